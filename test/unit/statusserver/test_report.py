from typing import Any

import orjson
import pytest

from ktrainer.kube.identity import ObjectKey
from ktrainer.statusserver.refusal import Refusal
from ktrainer.statusserver.report import Report, Target, build_apply, parse_report

AT = "2026-01-02T03:04:05Z"


def parse(trainer_status: Any) -> Report | None:
    return parse_report(orjson.dumps({"trainerStatus": trainer_status}))


def test_a_report_should_be_taken_as_it_is() -> None:
    status = {
        "progressPercentage": 50,
        "estimatedRemainingSeconds": 30,
        "metrics": [{"name": "loss", "value": "0.25"}],
        "lastUpdatedTime": AT,
    }
    report = parse(status)
    assert report == Report(status)
    assert report is not None
    assert report.payload() == {"trainerStatus": status}


@pytest.mark.parametrize("body", [b"{}", b'{"trainerStatus": null}', b'{"other": 1}'])
def test_an_empty_report_should_be_none(body: bytes) -> None:
    assert parse_report(body) is None


def test_null_should_be_as_good_as_absent_and_unknown_fields_passed_over() -> None:
    metric = {"name": "loss", "value": "1", "unit": "nat"}
    report = parse({"progressPercentage": None, "epoch": 3, "metrics": [metric], "lastUpdatedTime": AT})
    assert report == Report({"metrics": [{"name": "loss", "value": "1"}], "lastUpdatedTime": AT})
    assert parse({"metrics": None, "lastUpdatedTime": AT}) == Report({"lastUpdatedTime": AT})


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05.678901Z", "2026-01-02T05:04:05+02:00"])
def test_times_should_have_whole_seconds_and_be_in_utc(text: str) -> None:
    assert parse({"lastUpdatedTime": text}) == Report({"lastUpdatedTime": AT})


@pytest.mark.parametrize(
    "status, field, reason",
    [
        ({}, "trainerStatus.lastUpdatedTime", "FieldValueRequired"),
        ({"lastUpdatedTime": None}, "trainerStatus.lastUpdatedTime", "FieldValueRequired"),
        ({"lastUpdatedTime": "yesterday"}, "trainerStatus.lastUpdatedTime", "FieldValueInvalid"),
        ({"lastUpdatedTime": 5}, "trainerStatus.lastUpdatedTime", "FieldValueInvalid"),
        ({"progressPercentage": 101, "lastUpdatedTime": AT}, "trainerStatus.progressPercentage", "FieldValueInvalid"),
        ({"progressPercentage": "5", "lastUpdatedTime": AT}, "trainerStatus.progressPercentage", "FieldValueInvalid"),
        ({"metrics": [{"name": "a"}], "lastUpdatedTime": AT}, "trainerStatus.metrics[0].value", "FieldValueRequired"),
        ({"metrics": [5], "lastUpdatedTime": AT}, "trainerStatus.metrics[0]", "FieldValueInvalid"),
        ({"metrics": 5, "lastUpdatedTime": AT}, "trainerStatus.metrics", "FieldValueInvalid"),
        (
            {"metrics": [{"name": "a" * 65, "value": "1"}], "lastUpdatedTime": AT},
            "trainerStatus.metrics[0].name",
            "FieldValueTooLong",
        ),
        (
            {"metrics": [{"name": "a", "value": "1"}] * 257, "lastUpdatedTime": AT},
            "trainerStatus.metrics",
            "FieldValueTooMany",
        ),
        ([], "trainerStatus", "FieldValueInvalid"),
    ],
)
def test_what_does_not_fit_should_be_refused_with_its_path(status: Any, field: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse(status)
    assert caught.value.code == 422
    answer = orjson.loads(caught.value.body())
    assert [(cause["field"], cause["reason"]) for cause in answer["details"]["causes"]] == [(field, reason)]
    assert answer["message"].startswith(f"{field}: ")


def test_all_that_does_not_fit_should_be_told_at_once() -> None:
    with pytest.raises(Refusal) as caught:
        parse({"progressPercentage": -1, "estimatedRemainingSeconds": -1, "lastUpdatedTime": AT})
    assert len(orjson.loads(caught.value.body())["details"]["causes"]) == 2


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"5", b'{"trainerStatus":{},"trainerStatus":{}}', b"[" * 200 + b"]" * 200, b"\xff"]
)
def test_what_is_no_object_of_json_should_be_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_report(body)
    assert caught.value.code == 422


def test_what_is_applied_should_be_bound_to_this_version_of_this_trainjob() -> None:
    body = build_apply(Target(ObjectKey("team-a", "demo"), "u1"), "7", Report({"lastUpdatedTime": AT}))
    assert body == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"namespace": "team-a", "name": "demo", "uid": "u1", "resourceVersion": "7"},
        "status": {"trainerStatus": {"lastUpdatedTime": AT}},
    }
