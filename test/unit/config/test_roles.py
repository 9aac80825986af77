"""The rights of the manager and of people."""

from collections.abc import Iterator

import pytest

from ktrainer.api.configuration import Configuration
from support.manifests import CONFIG, Object, find, objects_of

NAME = "kubeflow-trainer-controller-manager"


@pytest.fixture(scope="module")
def roles() -> list[Object]:
    return objects_of(CONFIG / "rbac")


def rights(role: Object) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Group, resource, verb and names, one by one."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb, tuple(rule.get("resourceNames", ()))


def test_no_role_should_hold_what_leads_to_everything(roles: list[Object]) -> None:
    for role in roles:
        for group, resource, verb, _ in rights(role) if "rules" in role else ():
            assert "*" not in {group, resource, verb}
            assert verb not in {"escalate", "bind", "impersonate"}
            assert resource not in {"pods/exec", "nodes", "serviceaccounts/token"}


def test_the_manager_should_change_no_secret_but_its_own(roles: list[Object]) -> None:
    everywhere = {verb for _, resource, verb, _ in rights(find(roles, "ClusterRole", NAME)) if resource == "secrets"}
    assert everywhere == {"create", "get", "list", "watch"}
    own = {(verb, names) for _, resource, verb, names in rights(find(roles, "Role", NAME)) if resource == "secrets"}
    name = (Configuration().cert_management.webhook_secret_name,)
    # What does not exist yet has no name that could be looked at.
    assert own == {("create", ()), *((verb, name) for verb in ("get", "list", "update", "watch"))}


def test_the_manager_should_hold_one_lease_and_no_other(roles: list[Object]) -> None:
    assert not [each for each in rights(find(roles, "ClusterRole", NAME)) if each[1] == "leases"]
    lease = (Configuration().leader_election.resource_name,)
    assert {
        (verb, names) for _, resource, verb, names in rights(find(roles, "Role", NAME)) if resource == "leases"
    } == {
        ("create", ()),
        ("get", lease),
        ("update", lease),
    }


def test_the_manager_should_touch_no_webhook_configuration_but_its_own(roles: list[Object]) -> None:
    touched = {
        (resource, verb, names)
        for group, resource, verb, names in rights(find(roles, "ClusterRole", NAME))
        if group == "admissionregistration.k8s.io"
    }
    assert touched == {
        (resource, verb, names)
        for resource, names in (
            ("validatingwebhookconfigurations", ("validator.trainer.kubeflow.org",)),
            ("mutatingwebhookconfigurations", ("defaulter.trainer.kubeflow.org",)),
        )
        for verb in ("get", "patch")
    }


@pytest.mark.parametrize(
    "name, aggregated",
    [
        ("kubeflow-trainer-view", {"view", "edit", "admin"}),
        ("kubeflow-trainer-edit", {"edit", "admin"}),
        ("kubeflow-trainer-runtimes-view", set()),
        ("kubeflow-trainer-runtimes-edit", set()),
    ],
)
def test_rights_of_people_should_join_those_of_their_namespace(
    roles: list[Object], name: str, aggregated: set[str]
) -> None:
    labels = find(roles, "ClusterRole", name)["metadata"].get("labels", {})
    given = {key for key, value in labels.items() if value == "true"}
    # Those of Kubernetes, and those of the Kubeflow platform.
    assert given == {f"rbac.authorization.k8s.io/aggregate-to-{each}" for each in aggregated} | {
        f"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{each}" for each in aggregated
    }


def test_people_who_view_should_change_nothing_and_editors_no_runtime_of_the_cluster(roles: list[Object]) -> None:
    viewing = rights(find(roles, "ClusterRole", "kubeflow-trainer-view"))
    assert {verb for _, _, verb, _ in viewing} == {"get", "list", "watch"}
    editing = rights(find(roles, "ClusterRole", "kubeflow-trainer-edit"))
    assert {resource for _, resource, _, _ in editing} == {"trainjobs", "trainjobs/scale", "trainingruntimes"}
