from datetime import timedelta
from typing import Any

import pytest

from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.controllers.trainjob.deadline import seconds_to_deadline
from ktrainer.controllers.trainjob.ttl import seconds_to_live
from support.training import as_trainjob, trainjob_json
from support.virtualtime import EPOCH

NOW = EPOCH + timedelta(seconds=100)
CREATED = "2026-01-01T00:00:00Z"


def left(default: int | None = None, suspended: dict[str, str] | None = None, **spec: Any) -> float | None:
    value = trainjob_json(**spec)
    value["metadata"]["creationTimestamp"] = CREATED
    value["status"] = {"conditions": [{"type": "Suspended", **suspended}] if suspended else []}
    job = as_trainjob(value)
    return seconds_to_deadline(job, job.status.conditions, RunPolicy(active_deadline_seconds=default), NOW)


def test_without_a_limit_there_should_be_no_deadline() -> None:
    assert left() is None


@pytest.mark.parametrize(
    "default, spec, seconds",
    [
        pytest.param(None, {"activeDeadlineSeconds": 130}, 30, id="its own"),
        pytest.param(150, {}, 50, id="the runtime's"),
        pytest.param(150, {"activeDeadlineSeconds": 99}, -1, id="its own wins"),
        pytest.param(None, {"activeDeadlineSeconds": 2**63 - 1}, 2.0**63, id="the greatest"),
    ],
)
def test_a_deadline_should_count_from_the_creation(default: int | None, spec: dict[str, Any], seconds: float) -> None:
    assert left(default, **spec) == pytest.approx(seconds)


def test_a_suspended_trainjob_should_have_no_deadline() -> None:
    assert left(activeDeadlineSeconds=1, suspend=True) is None
    assert left(activeDeadlineSeconds=1, suspended={"status": "True"}) is None


def test_a_resume_should_start_the_deadline_anew() -> None:
    resumed = {"status": "False", "lastTransitionTime": "2026-01-01T00:01:30Z"}
    assert left(activeDeadlineSeconds=60, suspended=resumed) == 50


@pytest.mark.parametrize("at", [{}, {"lastTransitionTime": None}, {"lastTransitionTime": "yesterday"}])
def test_a_resume_at_a_time_that_cannot_be_read_should_not_end_the_deadline(at: dict[str, Any]) -> None:
    assert left(activeDeadlineSeconds=130, suspended={"status": "False", **at}) == 30


@pytest.mark.parametrize(
    "finished_at, ttl, seconds",
    [
        pytest.param(None, 1, None, id="no end"),
        pytest.param(CREATED, None, None, id="no limit"),
        pytest.param(CREATED, 130, 30, id="not yet"),
        pytest.param(CREATED, 0, -100, id="at once"),
    ],
)
def test_a_finished_trainjob_should_live_for_as_long_as_it_says(
    finished_at: str | None, ttl: int | None, seconds: float | None
) -> None:
    assert seconds_to_live(finished_at, ttl, NOW) == seconds
