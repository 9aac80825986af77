from dataclasses import replace

import pytest

from ktrainer.api.trainjobstatus import JobStatus, Reason, State
from ktrainer.controllers.trainjob.conditions import (
    MESSAGE_LIMIT,
    end_of,
    resources_condition,
    running_condition,
    state_of,
    suspended_condition,
    with_condition,
)
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube.conditions import FALSE, TRUE, Condition
from support.training import as_trainjob, trainjob, trainjob_json
from support.virtualtime import EPOCH


def workload(*, replicas: int = 1, restarts: int = 0, name: str = "node", **counts: int) -> WorkloadStatus:
    zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    return WorkloadStatus(
        jobs=(JobStatus(name=name, **{**zeros, **counts}),), restarts=restarts, replicas={"node": replicas}
    )


@pytest.mark.parametrize(
    "seen, reason",
    [
        pytest.param(None, Reason.PENDING, id="no workload"),
        pytest.param(WorkloadStatus(replicas={"node": 1}), Reason.PENDING, id="nothing reported"),
        pytest.param(workload(active=1), Reason.PENDING, id="not ready"),
        pytest.param(workload(ready=1), Reason.NODES_READY, id="ready"),
        pytest.param(replace(workload(ready=1), is_suspended=True), Reason.PENDING, id="just resumed"),
        pytest.param(workload(replicas=2, ready=1, succeeded=1), Reason.NODES_READY, id="ready or done"),
        pytest.param(workload(replicas=2, ready=1), Reason.PENDING, id="one of two"),
        pytest.param(workload(ready=1, name="initializer"), Reason.PENDING, id="another job"),
        pytest.param(workload(restarts=1), Reason.RESTARTING, id="restarted"),
        pytest.param(workload(restarts=1, ready=1), Reason.NODES_READY, id="restarted and ready again"),
    ],
)
def test_running_should_tell_of_the_job_that_numnodes_sizes(seen: WorkloadStatus | None, reason: Reason) -> None:
    condition = running_condition(trainjob(), seen, "node")
    assert (condition.reason, condition.status) == (reason, TRUE if reason is Reason.NODES_READY else FALSE)


def test_a_suspended_trainjob_should_not_run() -> None:
    assert running_condition(trainjob(suspend=True), workload(ready=1), "node").reason == Reason.SUSPENDED


@pytest.mark.parametrize(
    "types, suspend, state",
    [
        pytest.param([], False, State.PENDING, id="nothing"),
        pytest.param(["Running"], False, State.RUNNING, id="running"),
        pytest.param(["Running"], True, State.SUSPENDED, id="running, but suspended"),
        pytest.param(["Running", "Complete"], True, State.COMPLETE, id="the end counts"),
        pytest.param(["Failed"], False, State.FAILED, id="failed"),
    ],
)
def test_the_state_should_be_one_true_word(types: list[str], suspend: bool, state: State) -> None:
    assert state_of([Condition(type=each, status=TRUE) for each in types], suspend=suspend) is state


def test_a_condition_that_is_false_should_be_no_end() -> None:
    assert end_of([Condition(type="Complete", status=FALSE)]) is None


def test_suspended_should_be_told_only_of_those_that_ever_were() -> None:
    assert suspended_condition(trainjob()) is None
    told = suspended_condition(trainjob(suspend=True))
    assert told is not None
    assert (told.status, told.reason, told.message) == (TRUE, "Suspended", "TrainJob is suspended")
    before = {"conditions": [{"type": "Suspended", "status": "True", "reason": "Suspended"}]}
    resumed = suspended_condition(as_trainjob({**trainjob_json(), "status": before}))
    assert resumed is not None
    assert (resumed.status, resumed.reason, resumed.message) == (FALSE, "Resumed", "TrainJob is resumed")


def test_a_long_message_should_be_cut_to_what_the_api_takes() -> None:
    condition = resources_condition(trainjob(), Reason.APPLY_FAILED, "x" * (MESSAGE_LIMIT + 1))
    assert len(condition.message) == MESSAGE_LIMIT


def test_a_condition_that_brings_its_time_should_keep_it() -> None:
    new = Condition(type="Complete", status=TRUE, last_transition_time="2025-05-05T05:05:05Z")
    assert with_condition([], new, EPOCH)[0].last_transition_time == "2025-05-05T05:05:05Z"
    odd = Condition(type="Complete", status=TRUE, last_transition_time="yesterday")
    assert with_condition([], odd, EPOCH)[0].last_transition_time == "2026-01-01T00:00:00Z"
