from typing import Any

import pytest

from ktrainer.api.resources import JOBSETS
from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.api.trainjobstatus import Reason
from ktrainer.client.errors import ConnectionLost
from ktrainer.controllers.trainjob.size import OBJECT_BYTES, check_size
from ktrainer.controllers.trainjob.verdict import ChangeRefused, ForeignObject, ObjectTooLarge, verdict_of, verdict_on
from ktrainer.framework.component import Component
from ktrainer.framework.errors import EnvConflict, PluginError
from ktrainer.framework.findings import Findings
from ktrainer.kube import fields
from ktrainer.kube.errors import error_of
from ktrainer.kube.fields import Path
from ktrainer.runtime.errors import Rejected, RuntimeNotFound, SnapshotInvalid
from ktrainer.runtime.plan import Plan
from support.modelevents import api_error


def of_plugin(cause: Exception) -> PluginError:
    error = PluginError("mine", "build", cause)
    error.__cause__ = cause
    return error


CHANGE_REFUSED = ChangeRefused("it keeps what it has of spec.x", api_error(422, "Invalid"))
REJECTED = Rejected(Findings([fields.forbidden(Path("spec.trainer"), "no")]))


@pytest.mark.parametrize(
    "error, reason, is_lasting",
    [
        pytest.param(RuntimeNotFound("Kind", "rt"), Reason.RUNTIME_NOT_FOUND, True, id="no runtime"),
        pytest.param(SnapshotInvalid("odd"), Reason.RUNTIME_SNAPSHOT_INVALID, True, id="odd snapshot"),
        pytest.param(REJECTED, Reason.VALIDATION_REJECTED, True, id="rejected"),
        pytest.param(of_plugin(EnvConflict("A")), Reason.VALIDATION_REJECTED, True, id="plugins disagree"),
        pytest.param(ForeignObject(JOBSETS, "demo"), Reason.APPLY_REFUSED, True, id="not ours"),
        pytest.param(CHANGE_REFUSED, Reason.APPLY_REFUSED, True, id="not all of it taken"),
        pytest.param(api_error(400, "BadRequest"), Reason.APPLY_REFUSED, True, id="bad request"),
        pytest.param(api_error(413, "RequestEntityTooLarge"), Reason.APPLY_REFUSED, True, id="too large"),
        pytest.param(error_of(500, b"etcdserver: request is too large"), Reason.APPLY_REFUSED, True, id="etcd"),
        pytest.param(api_error(429, "TooManyRequests"), Reason.APPLY_FAILED, False, id="busy"),
        pytest.param(ConnectionLost("cut"), Reason.APPLY_FAILED, False, id="cut off"),
        pytest.param(of_plugin(api_error(403, "Forbidden")), Reason.APPLY_REFUSED, True, id="a plugin was refused"),
        pytest.param(of_plugin(KeyError("x")), Reason.APPLY_FAILED, False, id="a plugin failed"),
        pytest.param(KeyError("x"), Reason.APPLY_FAILED, False, id="a bug"),
    ],
)
def test_an_error_should_have_its_reason(error: Exception, reason: Reason, is_lasting: bool) -> None:
    verdict = verdict_of(error)
    assert (verdict.reason, verdict.is_lasting) == (reason, is_lasting)
    assert verdict.message


@pytest.mark.parametrize(
    "told, reason, is_lasting",
    [
        pytest.param({}, Reason.APPLIED, False, id="all is there"),
        pytest.param({"waits_for": "pods"}, Reason.APPLY_FAILED, False, id="something waits"),
        pytest.param({"refused": "spec.x"}, Reason.APPLY_REFUSED, True, id="something was refused"),
    ],
)
def test_what_was_not_planned_should_be_told_though_all_that_was_is_written(
    told: dict[str, Any], reason: Reason, is_lasting: bool
) -> None:
    plan = Plan(components=(), runtime_digest="", run_policy=RunPolicy(), **told)
    verdict = verdict_on(plan)
    assert (verdict.reason, verdict.is_lasting) == (reason, is_lasting)
    assert verdict.is_ready or verdict.message == next(iter(told.values()))


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ObjectTooLarge(JOBSETS, "demo", 2, 1), id="by its size"),
        pytest.param(api_error(413, "RequestEntityTooLarge"), id="by the server"),
        pytest.param(error_of(500, b"etcdserver: request is too large"), id="by etcd"),
        pytest.param(error_of(500, b"trying to send message larger than max"), id="by the client of etcd"),
    ],
)
def test_what_is_too_large_should_be_tried_three_times_an_hour_at_most(error: Exception) -> None:
    verdict = verdict_of(error)
    assert verdict.is_lasting
    assert 1 + 3600 // verdict.retry_seconds <= 3


def test_an_object_that_nobody_would_store_should_be_refused_with_its_size() -> None:
    component = Component(JOBSETS, {"metadata": {"name": "demo"}})
    check_size(component, b"x" * OBJECT_BYTES)
    with pytest.raises(ObjectTooLarge, match="1572865 bytes"):
        check_size(component, b"x" * (OBJECT_BYTES + 1))


def test_annotations_beyond_the_limit_should_be_refused() -> None:
    component = Component(JOBSETS, {"metadata": {"name": "demo", "annotations": {"é": "x" * 262_142}}})
    check_size(component, b"")
    component.body["metadata"]["annotations"]["a"] = ""
    with pytest.raises(ObjectTooLarge, match="262145 bytes of annotations"):
        check_size(component, b"")


def test_data_beyond_the_limit_of_a_config_map_should_be_refused() -> None:
    component = Component(JOBSETS, {"metadata": {"name": "demo"}, "data": {"a": "ä" * 600_000}})
    with pytest.raises(ObjectTooLarge, match="1200000 bytes"):
        check_size(component, b"")
