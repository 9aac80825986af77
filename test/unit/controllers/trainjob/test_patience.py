"""How often something is tried that fails again and again: in virtual time, by the controller as a whole."""

from collections import Counter
from typing import Any

import pytest
from structlog.testing import capture_logs

from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.api.trainjob import TrainJob
from ktrainer.client.events.body import EVENTS
from ktrainer.framework.component import Component
from ktrainer.framework.info import Info
from ktrainer.kube.errors import ApiError, error_of
from ktrainer.plugins.jobset.plugin import JobSet
from support.apiserver import ApiServer
from support.modelevents import api_error
from support.training import job, runtime
from support.trainingcluster import training_cluster
from support.virtualtime import VirtualClock

FAULTY = 10
MINUTES = 60.0
MOST_TRIES = 18
"""In ten minutes: the delay begins at 5 ms, doubles each time, and ends at 300 s."""
MOST_EVENTS = 25 + 2
"""In ten minutes: what an object may have at once, and one more every five minutes."""
LASTING_SECONDS = 61.0
"""After which anything else that lasts is tried again."""
LARGE = "x" * 800_000


def failing(error: ApiError) -> Any:
    return lambda call: error if call.resource.plural == "jobsets" and call.verb == "apply" else None


def tries_of(server: ApiServer) -> Counter[str]:
    """How often each JobSet was tried to be built."""
    return Counter(call.key.name for call in server.calls if str(call) == "apply jobsets")


def told_of(server: ApiServer) -> Counter[str]:
    """How many requests there were for the events of each TrainJob."""
    about = {key: each["regarding"]["name"] for key, each in server.stores[EVENTS].objects.items()}
    changes = (about[call.key] for call in server.calls if call.resource == EVENTS and call.verb == "patch")
    return Counter([*about.values(), *changes])


async def test_a_fault_that_lasts_should_be_met_with_patience(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = failing(api_error(500, "InternalError"))
        for number in range(FAULTY):
            cluster.submit(f"demo-{number}")
        await cluster.wait(10 * MINUTES)
        tries, told = tries_of(cluster.server), told_of(cluster.server)
        assert len(tries) == len(told) == FAULTY
        assert 10 <= min(tries.values()) <= max(tries.values()) <= MOST_TRIES
        assert max(told.values()) <= MOST_EVENTS


async def test_a_fault_should_not_hold_up_a_deadline(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = failing(api_error(500, "InternalError"))
        # Between the tries after some twenty and some forty seconds.
        cluster.submit(activeDeadlineSeconds=30)
        await cluster.wait(29)
        assert cluster.status()["state"] == "Pending"
        await cluster.wait(2)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"


async def test_a_bug_should_not_hold_up_a_deadline(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(plugin: JobSet, info: Info, trainjob: TrainJob) -> list[Component]:
        raise KeyError("bug")

    monkeypatch.setattr(JobSet, "build", fail)
    async with training_cluster(virtual_clock) as cluster:
        with capture_logs() as logs:
            # Between the tries after some twenty and some forty seconds.
            cluster.submit(activeDeadlineSeconds=30)
            await cluster.wait(31)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"
        found = [each for each in logs if each["event"] == "reconcile failed unexpectedly"]
        assert found
        assert {each["outcome"] for each in found} == {"panic"}


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
async def test_a_conflict_that_lasts_should_be_told(virtual_clock: VirtualClock, is_there: bool) -> None:
    async with training_cluster(virtual_clock) as cluster:
        if is_there:
            cluster.submit(suspend=True)
            await cluster.wait(1)
        denied = api_error(409, "Conflict", "admission webhook policy.acme.io denied the request")
        cluster.server.refuse = failing(denied)
        if is_there:
            cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": False}})
        else:
            cluster.submit()
        await cluster.wait(30)
        (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        assert (ready["reason"], "policy.acme.io" in ready["message"]) == ("ApplyFailed", True)
        cluster.server.calls.clear()
        await cluster.wait(MINUTES)
        # After half a minute of failures the tries are as far apart.
        assert tries_of(cluster.server)["demo"] <= 3
        cluster.server.refuse = lambda call: None
        await cluster.wait(3 * MINUTES)
        jobset = cluster.server.find(JOBSETS, "demo")
        assert jobset is not None
        assert (jobset["spec"]["suspend"], cluster.conditions()["ResourcesReady"]) == (False, "True Applied")


@pytest.mark.parametrize(
    "spec, error, words",
    [
        pytest.param({"trainer": {"args": [LARGE, LARGE]}}, None, "bytes, and 1572864 are the limit", id="object"),
        pytest.param({"annotations": {"a": LARGE[:300_000]}}, None, "bytes of annotations", id="annotations"),
        pytest.param({}, error_of(500, b"etcdserver: request is too large"), "is too large", id="etcd"),
        pytest.param({}, api_error(413, "RequestEntityTooLarge"), "", id="request"),
    ],
)
async def test_what_is_too_large_should_be_told_and_hardly_ever_tried_again(
    virtual_clock: VirtualClock, spec: dict[str, Any], error: ApiError | None, words: str
) -> None:
    async with training_cluster(virtual_clock, runtime(job())) as cluster:
        cluster.server.refuse = failing(error) if error else cluster.server.refuse
        cluster.submit(**spec)
        await cluster.wait(2 * LASTING_SECONDS)
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused"
        (condition,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        assert words in condition["message"]
        assert tries_of(cluster.server)["demo"] == (1 if error else 0)
