"""Runtimes at the webhook."""

from typing import Any

import pytest

from ktrainer.api.labels import DEPRECATED, SUPPORT
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from ktrainer.kube.identity import Resource
from support.hookcases import Webhook
from support.training import container, job, runtime

J = dict[str, Any]

JOB = "spec.template.spec.replicatedJobs[0]"
CONTAINERS = f"{JOB}.template.spec.template.spec.containers"
BOTH = pytest.mark.parametrize("resource", [TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES], ids=lambda each: each.kind)


def runtime_of(resource: Resource, *jobs: J) -> J:
    return runtime(*jobs, kind=resource.kind)


@BOTH
@pytest.mark.parametrize(
    "made, texts",
    [
        (job(replicas=2), [f"{JOB}.replicas: Invalid value: 2: must be 1"]),
        (job(replicas=0), [f"{JOB}.replicas: Invalid value: 0: must be 1"]),
        (job("node", "trainer", container("x")), [f'{CONTAINERS}: Invalid value: ["x"]: must have a container node']),
        (job("a", "dataset-initializer"), [f"{CONTAINERS}: Invalid value"]),
        (job("a", "model-initializer"), [f"{CONTAINERS}: Invalid value"]),
        (job("a", "trainer", container("x"), replicas=3), [f"{JOB}.replicas: ", f"{CONTAINERS}: "]),
    ],
)
async def test_a_new_runtime_that_plugins_cannot_use_should_be_refused(
    resource: Resource, made: J, texts: list[str]
) -> None:
    response = await Webhook().judge(runtime_of(resource, made), resource=resource)
    assert (response["allowed"], response["status"]["code"], response["status"]["reason"]) == (False, 403, "Forbidden")
    assert all(text in response["status"]["message"] for text in texts)


async def test_a_selector_that_lets_in_whom_it_was_to_keep_out_should_be_refused() -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn"}]}
    response = await Webhook().judge(runtime(allowedNamespaces=selector), resource=CLUSTER_TRAINING_RUNTIMES)
    place = "spec.allowedNamespaces.matchExpressions[0].values"
    assert response["status"]["message"] == f"{place}: Required value: the operator NotIn needs some"


@BOTH
async def test_a_good_runtime_should_be_allowed_without_a_word(resource: Resource) -> None:
    webhook = Webhook()
    assert await webhook.judge(runtime_of(resource), resource=resource) == {"uid": "u-7", "allowed": True}
    foreign = runtime_of(resource, job("x", None, container("x"), replicas=2))
    assert await webhook.judge(foreign, resource=resource) == {"uid": "u-7", "allowed": True}


async def test_an_update_should_be_refused_for_the_clusters_kind_and_warned_of_for_the_other() -> None:
    bad = job("node", "trainer", container("x"), replicas=2)
    refused = await Webhook().judge(
        runtime_of(CLUSTER_TRAINING_RUNTIMES, bad),
        runtime_of(CLUSTER_TRAINING_RUNTIMES),
        resource=CLUSTER_TRAINING_RUNTIMES,
    )
    assert not refused["allowed"]
    warned = await Webhook().judge(
        runtime_of(TRAINING_RUNTIMES, bad), runtime_of(TRAINING_RUNTIMES), resource=TRAINING_RUNTIMES
    )
    assert warned["allowed"]
    assert warned["warnings"][0] == f"{JOB}.replicas: must be 1"
    assert warned["warnings"][1].startswith(f"{CONTAINERS}: must have a container node")


@BOTH
async def test_the_finalizers_of_a_bad_runtime_should_be_free_to_change(resource: Resource) -> None:
    old = runtime_of(resource, job(replicas=2))
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["trainer.kubeflow.org/resource-in-use"]}}
    assert await Webhook().judge(new, old, resource=resource) == {"uid": "u-7", "allowed": True}


@BOTH
async def test_a_deprecated_runtime_should_be_warned_of(resource: Resource) -> None:
    value = runtime_of(resource)
    value["metadata"]["labels"] = {SUPPORT: DEPRECATED}
    response = await Webhook().judge(value, resource=resource)
    assert response["warnings"] == [f"the {resource.kind} is deprecated, and will be removed"]
