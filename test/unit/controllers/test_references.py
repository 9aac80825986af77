from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from ktrainer.api.trainjobstatus import State
from ktrainer.controllers.references import by_state, runtime_value, unfinished_by_runtime
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.meta import ObjectMeta
from ktrainer.machinery.cache.objects import CachedObject
from support.jsonvalues import VALUES
from support.trainjobrecords import cached_trainjob

COMPLETE = {"type": "Complete", "status": "True"}


@pytest.mark.parametrize(
    ("ref", "runtime", "key"),
    [
        pytest.param({"name": "torch"}, CLUSTER_TRAINING_RUNTIMES, ObjectKey("", "torch"), id="defaults"),
        pytest.param(
            {"name": "torch", "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime"},
            TRAINING_RUNTIMES,
            ObjectKey("team-a", "torch"),
            id="in the job's namespace",
        ),
    ],
)
def test_a_trainjob_should_be_found_by_its_runtime(ref: dict[str, str], runtime: Any, key: ObjectKey) -> None:
    assert unfinished_by_runtime(cached_trainjob(ref)) == (runtime_value(runtime, key),)


def test_the_two_kinds_of_runtimes_should_not_be_mixed_up() -> None:
    key = ObjectKey("", "torch")
    assert runtime_value(TRAINING_RUNTIMES, key) != runtime_value(CLUSTER_TRAINING_RUNTIMES, key)


@pytest.mark.parametrize(
    ("conditions", "is_found"),
    [
        pytest.param([], True, id="no conditions"),
        pytest.param([{"type": "Complete", "status": "False"}, {"type": "Running", "status": "True"}], True, id="runs"),
        pytest.param([COMPLETE], False, id="complete"),
        pytest.param(
            [{"type": "Suspended", "status": "False"}, {"type": "Failed", "status": "True"}], False, id="fail"
        ),
    ],
)
def test_only_unfinished_trainjobs_should_be_found(conditions: list[Any], is_found: bool) -> None:
    assert bool(unfinished_by_runtime(cached_trainjob(conditions=conditions))) is is_found


@pytest.mark.parametrize("ref", [{"name": "torch", "kind": "Deployment"}, {"name": "torch", "apiGroup": "apps"}, {}, 7])
def test_a_reference_to_no_runtime_of_ours_should_not_be_found(ref: Any) -> None:
    assert unfinished_by_runtime(cached_trainjob(ref)) == ()


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        pytest.param({}, State.PENDING, id="new"),
        pytest.param({"suspend": True}, State.SUSPENDED, id="new and suspended"),
        pytest.param({"suspend": None}, State.PENDING, id="suspend is null"),
        pytest.param({"state": "Running"}, State.RUNNING, id="written"),
        pytest.param({"state": "Odd"}, State.PENDING, id="unknown word"),
        pytest.param({"state": "Running", "conditions": [COMPLETE]}, State.COMPLETE, id="an end is an end"),
        pytest.param({"ref": 7}, State.PENDING, id="malformed"),
    ],
)
def test_a_state_should_be_known_even_before_it_is_written(fields: dict[str, Any], state: State) -> None:
    assert by_state(cached_trainjob(**fields)) == (state,)


@given(st.tuples(VALUES, VALUES))
def test_no_trainjob_should_break_the_indexes(parts: tuple[Any, Any]) -> None:
    spec, status = (Raw(orjson.dumps(part)) for part in parts)
    obj = CachedObject(metadata=ObjectMeta(name="job", namespace="team-a"), spec=spec, status=status)
    assert len(unfinished_by_runtime(obj)) <= 1
    assert len(by_state(obj)) == 1
