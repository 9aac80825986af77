"""What is left out of the status of a TrainJob that runs, and that nothing is lost by it."""

import pytest

from ktrainer.api.trainjobstatus import Reason, State, TrainJobStatus
from ktrainer.controllers.trainjob.brevity import abridged, restored
from ktrainer.controllers.trainjob.conditions import RUNNING_MESSAGES
from ktrainer.controllers.trainjob.verdict import READY
from ktrainer.kube.conditions import Condition

START = "2026-01-01T00:00:00Z"
APPLIED = Condition("ResourcesReady", "True", "Applied", READY.message, START, 3)
REFUSED = Condition("ResourcesReady", "False", "ApplyRefused", "no", START, 3)
RUNS = Condition("Running", "True", "NodesReady", RUNNING_MESSAGES[Reason.NODES_READY], START, 3)
RESUMED = Condition("Suspended", "False", "Resumed", "TrainJob is resumed", START, 2)
FOREIGN = Condition("Admitted", "True", "Quota", "", START)


def status(*conditions: Condition, state: State | None = State.RUNNING) -> TrainJobStatus:
    return TrainJobStatus(conditions=list(conditions), state=state, start_time=START, observed_generation=3)


def test_what_all_running_trainjobs_say_should_be_left_out_and_found_again() -> None:
    full = status(RESUMED, FOREIGN, APPLIED, RUNS)
    brief = abridged(full)
    assert brief == status(RESUMED, FOREIGN)
    assert abridged(brief) == brief
    assert restored(brief) == full


@pytest.mark.parametrize(
    "full",
    [
        pytest.param(status(REFUSED, RUNS), id="something could not be applied"),
        pytest.param(status(APPLIED, state=State.PENDING), id="not all nodes are ready"),
        pytest.param(status(APPLIED, state=State.COMPLETE), id="it has ended"),
        pytest.param(status(state=None), id="nobody has seen it"),
        pytest.param(status(state=State.PENDING), id="nothing is known"),
    ],
)
def test_all_else_should_be_told_in_full(full: TrainJobStatus) -> None:
    assert abridged(full) is full
    assert restored(full) is full
