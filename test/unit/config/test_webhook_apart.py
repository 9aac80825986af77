"""Admission in a Deployment of its own: what the component `config/webhook-apart` makes of config/default."""

from typing import Any

import pytest
import yaml

from ktrainer.kube.jsonvalue import copy_of
from support.manifests import CONFIG, Object, find, kustomization_of, objects_of

NAME, APART = "kubeflow-trainer-controller-manager", "kubeflow-trainer-webhook"


def patched(obj: Object, operations: list[Object]) -> Object:
    """The object after a JSON patch, as far as the component needs them."""
    result: Object = copy_of(obj)
    for operation in operations:
        *parents, last = (part.replace("~1", "/") for part in operation["path"].split("/")[1:])
        place: Any = result
        for part in parents:
            place = place[int(part) if isinstance(place, list) else part]
        key = last if isinstance(place, dict) or last == "-" else int(last)
        match operation["op"]:
            case "test":
                assert place[key] == operation["value"]
            case "remove":
                del place[key]
            case "add" if key == "-":
                place.append(operation["value"])
            case "add":
                place[key] = operation["value"]
    return result


@pytest.fixture(scope="module")
def installed() -> list[Object]:
    objects = objects_of(CONFIG / "default")
    for patch in kustomization_of(CONFIG / "webhook-apart")["patches"]:
        target = find(objects, patch["target"]["kind"], patch["target"]["name"])
        objects[objects.index(target)] = patched(target, yaml.safe_load(patch["patch"]))
    return objects + objects_of(CONFIG / "webhook-apart")


def labels_of(deployment: Object) -> Object:
    labels: Object = deployment["spec"]["template"]["metadata"]["labels"]
    return labels


def container_of(deployment: Object) -> Object:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def test_the_service_should_call_those_who_answer(installed: list[Object]) -> None:
    manager, webhook = (find(installed, "Deployment", name) for name in (NAME, APART))
    assert container_of(manager)["args"][-1] == "--no-webhook"
    assert container_of(webhook)["args"][0] == "webhook"
    ports = {each["name"]: each["targetPort"] for each in find(installed, "Service", NAME)["spec"]["ports"]}
    called = {
        deployment["metadata"]["name"]: {each["name"] for each in container_of(deployment)["ports"]} - {"health"}
        for deployment in (manager, webhook)
    }
    assert called == {NAME: {"metrics", "progress"}, APART: {"webhook", "metrics"}}
    assert set(ports.values()) == set.union(*called.values())


def test_all_pods_should_be_found_by_what_they_share(installed: list[Object]) -> None:
    shared = [
        find(installed, "Service", NAME)["spec"]["selector"],
        find(installed, "NetworkPolicy", NAME)["spec"]["podSelector"]["matchLabels"],
    ]
    for name in (NAME, APART):
        labels = labels_of(find(installed, "Deployment", name))
        assert all(selector.items() <= labels.items() for selector in shared)


@pytest.mark.parametrize("kind", ["Deployment", "PodDisruptionBudget"])
def test_no_pod_should_be_selected_twice(installed: list[Object], kind: str) -> None:
    selectors = {name: find(installed, kind, name)["spec"]["selector"]["matchLabels"] for name in (NAME, APART)}
    for name in (NAME, APART):
        labels = labels_of(find(installed, "Deployment", name))
        assert [each for each, selector in selectors.items() if selector.items() <= labels.items()] == [name]


def test_its_pods_should_be_like_those_of_the_manager(installed: list[Object]) -> None:
    manager, webhook = (copy_of(find(installed, "Deployment", name)["spec"]) for name in (NAME, APART))
    for spec in (manager, webhook):
        container = spec["template"]["spec"]["containers"][0]
        for field in ("name", "args", "ports"):
            del container[field]
        del spec["selector"], spec["template"]["metadata"]
        for each in spec["template"]["spec"]["topologySpreadConstraints"]:
            del each["labelSelector"]
    assert webhook == manager
    budgets = [find(installed, "PodDisruptionBudget", name)["spec"] for name in (NAME, APART)]
    assert budgets[0]["maxUnavailable"] == budgets[1]["maxUnavailable"] == 1


def test_what_is_added_should_be_in_the_managers_namespace() -> None:
    assert {each["metadata"]["namespace"] for each in objects_of(CONFIG / "webhook-apart")} == {"kubeflow-system"}
