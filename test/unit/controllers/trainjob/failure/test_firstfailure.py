from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.api.resources import PODS as PODS_RESOURCE
from ktrainer.api.trainjobstatus import FirstFailure
from ktrainer.controllers.paging import PAGE_SIZE
from ktrainer.controllers.trainjob.failure.firstfailure import PAGES, Search, fetch_first_failure
from ktrainer.controllers.trainjob.failure.podstatus import Pod
from ktrainer.kube.identity import ObjectKey
from support.cases import cases
from support.jsonvalues import VALUES
from support.modelserver import ModelServer
from support.podrecords import J, at, container, disrupted, ended, pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def first_failure_of(pods: Iterable[Any]) -> FirstFailure | None:
    """What failed first; what does not look like a pod is passed over, as it is in a list."""
    search = Search()
    for value in pods:
        with contextlib.suppress(msgspec.ValidationError):
            search.look_at(msgspec.convert(value, Pod))
    return search.result()


def found(*pods: J) -> FirstFailure:
    failure = first_failure_of(pods)
    assert failure is not None
    return failure


def test_a_failed_container_should_be_reported_in_full() -> None:
    assert found(pod("a", container(ended(3, 100, message="boom\n")))) == FirstFailure(
        time=at(100),
        job="node",
        pod="a",
        node="worker-a",
        container="node",
        exit_code=3,
        reason="Error",
        message="boom",
    )


def test_nothing_should_be_reported_where_nothing_failed() -> None:
    running = pod("a", container({"running": {"startedAt": at(1)}}), phase="Running")
    waiting = pod("b", container({"waiting": {"reason": "ContainerCreating"}}), phase="Pending")
    done = pod("c", container(ended(0)), init=[container(ended(143), name="proxy")], phase="Succeeded")
    assert first_failure_of([running, waiting, done]) is None
    assert first_failure_of([]) is None


@pytest.mark.parametrize(
    ("terminated", "expected"),
    [
        pytest.param({"code": 137, "reason": "OOMKilled"}, (137, 9, "OOMKilled"), id="out of memory"),
        pytest.param({"code": 139}, (139, 11, "Error"), id="segmentation fault"),
        pytest.param({"code": 143}, (143, 15, "Error"), id="told to end"),
        pytest.param({"code": 0, "signal": 6}, (0, 6, "Completed"), id="a signal that the runtime tells"),
        pytest.param({"code": 128, "reason": "StartError"}, (128, None, "StartError"), id="128 is no signal"),
        pytest.param({"code": 255}, (255, None, "Error"), id="255 is no signal"),
        pytest.param({"code": 2, "reason": None}, (2, None, "Error"), id="no reason"),
    ],
)
def test_exit_codes_should_be_understood(terminated: dict[str, Any], expected: tuple[Any, ...]) -> None:
    failure = found(pod("a", container(ended(**terminated))))
    assert (failure.exit_code, failure.signal, failure.reason) == expected


FIRST = [
    pytest.param(
        [pod("b", container(ended(1, 101))), pod("a", container(ended(1, 100)))],
        "a",
        id="by time",
    ),
    pytest.param(
        [pod("a", container(ended(143, 99), name="node")), pod("b", container(ended(1, 100)))],
        "b",
        id="who was told to end, by clocks that differ",
    ),
    pytest.param(
        [pod("a", container(ended(137, 90, reason="Error"))), pod("b", container(ended(1, 100)))],
        "a",
        id="who was killed long before the others failed",
    ),
    pytest.param(
        [pod("a", container(ended(143, 50)), deleted=50), pod("b", container(ended(1, 100)))],
        "b",
        id="not who was deleted",
    ),
    pytest.param(
        [pod("a", container(ended(1, 60)), deleted=50), pod("b", container(ended(1, 100)))],
        "b",
        id="not who was deleted and failed to end well",
    ),
    pytest.param(
        [pod("a", container(ended(1, 49)), deleted=50), pod("b", container(ended(1, 100)))],
        "a",
        id="who failed before it was deleted",
    ),
    pytest.param(
        [pod("a", container(ended(143, 52), ended(1, 49)), deleted=50), pod("b", container(ended(1, 100)))],
        "a",
        id="who failed, was started again and then deleted",
    ),
    pytest.param(
        [pod("a", container(ended(0, 52), ended(1, 49)), deleted=50), pod("b", container(ended(1, 100)))],
        "a",
        id="who failed, was started again, then deleted and ended well",
    ),
    pytest.param(
        [
            pod("a", container({"running": {"startedAt": at(52)}}, ended(1, 50)), phase="Running"),
            pod("b", container(ended(1, 100))),
        ],
        "a",
        id="who failed and was just started again",
    ),
    pytest.param(
        [
            pod("a", container({"running": {"startedAt": at(52)}}, ended(1, 50)), phase="Running"),
            pod("b", container(ended(1, 1000))),
        ],
        "b",
        id="not who has long recovered",
    ),
    pytest.param(
        [pod("b", container(ended(1, 2000, startedAt=at(60)), ended(1, 50))), pod("a", container(ended(1, 1900)))],
        "a",
        id="not by a crash that was recovered from before the next",
    ),
    pytest.param(
        [
            pod("a", container({"running": {}}), init=[container(ended(0, 60), ended(1, 50))], phase="Running"),
            pod("b", container(ended(1, 100))),
        ],
        "b",
        id="not an initialization that went well in the end",
    ),
    pytest.param(
        [pod("a", container(ended(1, 500)), attempt=2), pod("b", container(ended(1, 100)), attempt=1)],
        "a",
        id="in the last attempt",
    ),
    pytest.param(
        [
            pod("a", container({"running": {"startedAt": at(500)}}), attempt=2, phase="Running"),
            pod("b", container(ended(1, 100)), attempt=1),
        ],
        "b",
        id="in the attempt before, if nothing has failed since",
    ),
    pytest.param(
        [
            pod("a", container(ended(143, 130)), conditions=[disrupted("PreemptionByScheduler", 90)], deleted=90),
            pod("b", container(ended(1, 100))),
        ],
        "a",
        id="who was preempted",
    ),
    pytest.param(
        [pod("a", container(ended(137, 100, reason="OOMKilled"))), pod("b", container(ended(1, 103)))],
        "a",
        id="whose memory ran out",
    ),
    pytest.param(
        [pod("a", container(ended(137, 100)), reason="Evicted"), pod("b", container(ended(1, 103)))],
        "a",
        id="who was evicted",
    ),
    pytest.param(
        [pod("a", container(ended(1, 100))), pod("b", reason="Evicted", startTime=at(50))],
        "b",
        id="an evicted pod without containers",
    ),
]


@pytest.mark.parametrize(("pods", "first"), FIRST)
def test_the_first_failure_should_be_found(pods: Sequence[J], first: str) -> None:
    assert found(*pods).pod == first
    assert found(*reversed(pods)).pod == first


def test_init_containers_and_sidecars_should_count() -> None:
    init = container(ended(2, 100), name="dataset-initializer")
    assert found(pod("a", container({"waiting": {}}), init=[init], phase="Pending")).container == "dataset-initializer"
    sidecar, main = container(ended(143, 100), name="proxy"), container(ended(1, 101))
    assert found(pod("a", main, init=[sidecar])).container == "node"
    sidecar = container(ended(1, 90), name="proxy")
    assert found(pod("a", main, init=[sidecar])).container == "proxy"


def test_an_evicted_pod_should_tell_why() -> None:
    text = "The node was low on resource: memory."
    failure = found(pod("a", reason="Evicted", message=text, startTime=at(7)))
    assert (failure.reason, failure.message, failure.time) == ("Evicted", text, at(7))
    assert (failure.container, failure.exit_code, failure.node) == (None, None, "worker-a")
    with_container = found(pod("a", container(ended(137, 100)), reason="Evicted", message=text))
    assert (with_container.reason, with_container.message) == ("Evicted", text)
    assert (with_container.container, with_container.signal, with_container.time) == ("node", 9, at(100))


def test_a_lost_node_should_be_told() -> None:
    conditions = [disrupted("DeletionByTaintManager", 60, "Taint manager: deleting due to NoExecute taint")]
    lost = pod("a", container({"running": {}}), phase="Running", conditions=conditions, deleted=60)
    failure = found(lost)
    assert (failure.reason, failure.time) == ("DeletionByTaintManager", at(60))
    assert failure.message == "Taint manager: deleting due to NoExecute taint"
    old_style = pod("a", container({"running": {}}), phase="Running", reason="NodeLost", deleted=60)
    assert found(old_style).reason == "NodeLost"


def test_a_preempted_pod_should_tell_how_its_container_ended() -> None:
    conditions = [disrupted("PreemptionByScheduler", 90)]
    failure = found(pod("a", container(ended(143, 130)), conditions=conditions, deleted=90))
    assert (failure.reason, failure.container, failure.signal) == ("PreemptionByScheduler", "node", 15)


def test_a_disruption_should_not_hide_that_memory_ran_out() -> None:
    failure = found(pod("a", container(ended(137, 100, reason="OOMKilled")), reason="Evicted"))
    assert failure.reason == "OOMKilled"


def test_a_disruption_that_did_not_come_true_should_not_count() -> None:
    running = pod("a", container({"running": {}}), phase="Running", conditions=[disrupted("Preemption", 60)])
    assert first_failure_of([running]) is None


def test_the_deletion_of_pods_alone_should_be_no_failure() -> None:
    assert first_failure_of([pod(name, container(ended(143, 55)), deleted=50) for name in "abc"]) is None


def test_a_failed_pod_of_which_nothing_more_is_known_should_count() -> None:
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": at(77)}
    failure = found(pod("a", container(ended(0, 100)), conditions=[ready]))
    assert (failure.reason, failure.time, failure.container) == ("Error", at(77), None)


def test_a_container_without_a_time_should_get_the_best_there_is() -> None:
    unknown = container(ended(137, None, reason="ContainerStatusUnknown"))
    assert found(pod("a", unknown, startTime=at(9))).time == at(9)
    assert found(pod("a", unknown)).time == at(0)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("Trace:\n  File x\r\n\nValueError: é\t1\n", "Trace: | File x | ValueError: é 1", id="lines"),
        pytest.param("\x1b[31mred\x1b[0m\x00", "[31mred [0m", id="terminal codes"),
        pytest.param("a" * 3000 + "end", "a" * 2045 + "end", id="the end matters"),
        pytest.param("é" * 1500 + "x", "é" * 1023 + "x", id="cut between characters"),
        pytest.param("\ud800!", "?!", id="not UTF-8"),
        pytest.param(" \n ", None, id="blank"),
    ],
)
def test_messages_should_be_short_and_printable(message: str, expected: str | None) -> None:
    assert found(pod("a", container(ended(1, 100, message=message)))).message == expected


def test_what_is_no_pod_should_be_passed_over() -> None:
    good = pod("a", container(ended(1, 100)))
    bad: list[Any] = [None, 7, [], {}, {"metadata": 7}, {"metadata": {}, "status": {"containerStatuses": [7]}}]
    assert found(*bad, good).pod == "a"


NAMES = st.sampled_from(["a", "b", "x" * 300, "\ud800", ""])
TIMES = st.sampled_from([None, "", "soon", at(1), at(5000), "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 5])
NUMBERS = st.sampled_from([0, 1, 137, 255, -1, 2**31, 2**70, 0.5, "1", None])
STATES = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "running": st.fixed_dictionaries({}, optional={"startedAt": TIMES}),
        "terminated": st.fixed_dictionaries(
            {},
            optional={
                "exitCode": NUMBERS,
                "signal": NUMBERS,
                "reason": NAMES | st.none(),
                "message": st.text() | VALUES,
                "startedAt": TIMES,
                "finishedAt": TIMES,
            },
        ),
    },
)
CONTAINERS = st.lists(
    st.fixed_dictionaries({}, optional={"name": NAMES | VALUES, "state": STATES, "lastState": STATES}), max_size=3
)
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["DisruptionTarget", "Ready"]), "status": st.sampled_from(["True", "False"])},
        optional={"reason": NAMES, "message": st.text(), "lastTransitionTime": TIMES},
    ),
    max_size=2,
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": NAMES,
                "labels": st.dictionaries(
                    st.sampled_from(["jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/restart-attempt"]),
                    NAMES | st.sampled_from(["1", "²", "9" * 400]),
                ),
                "creationTimestamp": TIMES,
                "deletionTimestamp": TIMES,
                "deletionGracePeriodSeconds": NUMBERS,
            },
        )
    },
    optional={
        "spec": st.fixed_dictionaries({}, optional={"nodeName": NAMES}),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown", None]),
                "reason": NAMES,
                "message": st.text(),
                "startTime": TIMES,
                "conditions": CONDITIONS | st.none(),
                "containerStatuses": CONTAINERS | st.none(),
                "initContainerStatuses": CONTAINERS | VALUES,
            },
        ),
    },
)


@settings(max_examples=cases(2_000), deadline=None)
@given(st.lists(PODS | VALUES, max_size=5))
def test_no_pod_should_be_too_odd(pods: list[Any]) -> None:
    failure = first_failure_of(pods)
    if failure is not None:
        texts = (failure.job, failure.pod, failure.node, failure.container, failure.reason, failure.message)
        for text in filter(None, texts):
            assert len(text.encode()) <= 2048
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text)


KEY = ObjectKey("team-a", "demo")


def server_of(*pods: J) -> ModelServer:
    server = ModelServer(PODS_RESOURCE)
    for each in pods:
        metadata = each["metadata"]
        metadata["labels"]["jobset.sigs.k8s.io/jobset-name"] = "demo"
        server.write(ObjectKey("team-a", metadata["name"]), {**each, "metadata": {"namespace": "team-a", **metadata}})
    return server


async def test_all_pods_of_the_job_should_be_listed_page_by_page() -> None:
    count = 2 * PAGE_SIZE + 1
    server = server_of(*(pod(f"p{number:04}", container(ended(1, 5000 - number))) for number in range(count)))
    other = pod("other", container(ended(1, 1)))
    server.write(ObjectKey("team-b", "other"), {**other, "metadata": {**other["metadata"], "namespace": "team-b"}})
    failure = await fetch_first_failure(server, KEY, None)
    assert failure is not None
    assert failure.pod == f"p{count - 1:04}"
    assert [(asked.namespace, asked.limit) for asked in server.asked] == [("team-a", PAGE_SIZE)] * 3


async def test_a_job_of_any_size_should_take_a_bounded_number_of_requests() -> None:
    server = server_of(*(pod(f"p{number:04}", container(ended(1, 100))) for number in range(PAGES + 1)))
    server.max_page = 1
    assert await fetch_first_failure(server, KEY, None) is not None
    assert len(server.asked) == PAGES


async def test_pods_of_a_former_job_of_that_name_should_not_count() -> None:
    server = server_of(pod("old", container(ended(1, 100))))
    assert await fetch_first_failure(server, KEY, at(0)) is not None
    assert await fetch_first_failure(server, KEY, at(1)) is None


async def test_a_pod_that_cannot_be_read_should_not_hide_the_others() -> None:
    server = server_of(pod("a", container(ended(1, 100))), pod("b", container({"terminated": 7})))
    failure = await fetch_first_failure(server, KEY, None)
    assert failure is not None
    assert failure.pod == "a"
