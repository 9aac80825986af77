from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.api.trainjobstatus import State, TrainJobStatus
from ktrainer.controllers.metrics import TrainJobMetrics
from ktrainer.kube.conditions import Condition
from ktrainer.kube.meta import ObjectMeta
from ktrainer.machinery.cache.store import Store
from support.podrecords import at
from support.trainjobrecords import cached_trainjob

if TYPE_CHECKING:
    from ktrainer.machinery.cache.objects import CachedObject

META = ObjectMeta(name="job", namespace="team-a", uid="u", creation_timestamp=at(0))


class Bench:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.store: Store[CachedObject] = Store({})
        self.metrics = TrainJobMetrics(self.registry, self.store)

    def write(self, *statuses: TrainJobStatus) -> None:
        """Write one status after the other, the first over none."""
        for old, new in zip((TrainJobStatus(), *statuses), statuses, strict=False):
            self.metrics.status_written(META, old, new)

    def waits(self) -> tuple[float | None, float | None]:
        """How often a time to running was noted, and their sum."""
        name = "ktrainer_trainjob_time_to_running_seconds"
        return self.registry.get_sample_value(f"{name}_count"), self.registry.get_sample_value(f"{name}_sum")

    def runs(self, outcome: str) -> tuple[float | None, float | None]:
        name, labels = "ktrainer_trainjob_run_seconds", {"outcome": outcome}
        return (
            self.registry.get_sample_value(f"{name}_count", labels),
            self.registry.get_sample_value(f"{name}_sum", labels),
        )

    def states(self) -> dict[State, float | None]:
        return {state: self.registry.get_sample_value("ktrainer_trainjobs", {"state": state.value}) for state in State}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def status(*conditions: Condition) -> TrainJobStatus:
    return TrainJobStatus(conditions=list(conditions))


def running(seconds: int) -> Condition:
    return Condition("Running", "True", "NodesReady", "", at(seconds))


def not_running(reason: str, seconds: int) -> Condition:
    return Condition("Running", "False", reason, "", at(seconds))


def suspended(value: str, seconds: int) -> Condition:
    return Condition("Suspended", value, "Resumed", "", at(seconds))


def ended(type_: str, seconds: int) -> Condition:
    return Condition(type_, "True", "R", "", at(seconds))


def test_all_series_should_exist_from_the_start(bench: Bench) -> None:
    assert bench.states() == dict.fromkeys(State, 0)
    assert bench.waits() == (0, 0)
    assert bench.runs("Complete") == bench.runs("Failed") == (0, 0)


def test_trainjobs_should_be_counted_by_state_as_the_cache_has_them(bench: Bench) -> None:
    jobs = [cached_trainjob(name="a"), cached_trainjob(name="b", state="Running"), cached_trainjob(name="c")]
    for job in jobs:
        bench.store.put(job.key, job)
    assert bench.states() == dict.fromkeys(State, 0) | {State.PENDING: 2, State.RUNNING: 1}
    bench.store.remove(jobs[0].key)
    assert bench.states()[State.PENDING] == 1


def test_the_time_to_running_should_begin_at_the_creation(bench: Bench) -> None:
    bench.write(status(not_running("Pending", 1)), status(running(40)), status(running(40)))
    assert bench.waits() == (1, 40)


def test_the_time_to_running_should_begin_anew_with_a_resume(bench: Bench) -> None:
    bench.write(
        status(running(40)),
        status(not_running("Suspended", 50), suspended("True", 50)),
        status(not_running("Pending", 50), suspended("False", 100)),
        status(running(107), suspended("False", 100)),
    )
    assert bench.waits() == (2, 47)


@pytest.mark.parametrize("reason", ["Restarting", "Pending"])
def test_nodes_that_become_ready_again_should_not_count(bench: Bench, reason: str) -> None:
    bench.write(status(running(40)), status(not_running(reason, 60)), status(running(90)))
    assert bench.waits() == (1, 40)


def test_after_a_restart_of_the_manager_a_restarted_job_should_not_count(bench: Bench) -> None:
    bench.metrics.status_written(META, status(not_running("Restarting", 60)), status(running(90)))
    assert bench.waits() == (0, 0)


@pytest.mark.parametrize("outcome", ["Complete", "Failed"])
def test_the_run_time_should_be_counted_once_by_outcome(bench: Bench, outcome: str) -> None:
    done = status(not_running("Finished", 100), ended(outcome, 100))
    bench.write(status(running(40)), done, done)
    assert bench.runs(outcome) == (1, 100)
    assert bench.runs({"Complete": "Failed", "Failed": "Complete"}[outcome]) == (0, 0)


def test_the_run_time_should_begin_with_the_last_resume(bench: Bench) -> None:
    resumed = suspended("False", 70)
    bench.write(status(running(80), resumed), status(ended("Complete", 100), resumed))
    assert bench.runs("Complete") == (1, 30)


def test_a_finished_trainjob_should_not_be_counted_again_after_a_restart(bench: Bench) -> None:
    done = status(ended("Complete", 100))
    bench.metrics.status_written(META, done, status(ended("Complete", 100), not_running("Finished", 100)))
    assert bench.runs("Complete") == (0, 0)


def test_times_that_make_no_sense_should_count_as_none(bench: Bench) -> None:
    bench.write(status(running(40)), status(Condition("Failed", "True", "R", "", "soon")))
    assert bench.runs("Failed") == (1, 0)
    bench.write(status(suspended("False", 50), running(40)))
    assert bench.waits() == (2, 40)
    bench.metrics.status_written(ObjectMeta(name="odd"), TrainJobStatus(), status(ended("Failed", 1)))
    assert bench.runs("Failed") == (1, 0)


def test_nothing_should_be_kept_of_trainjobs_that_are_finished_or_gone(bench: Bench) -> None:
    bench.write(status(running(40)))
    bench.metrics.forget(META.key)
    bench.write(status(running(40)))
    assert bench.waits() == (2, 80)
    bench.write(status(running(40)), status(ended("Complete", 50)), status(), status(running(60)))
    assert bench.waits() == (3, 140)
