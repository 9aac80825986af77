from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.plugins.jobset.plugin import JobSet
from support.training import (
    container,
    dependencies,
    errors_of,
    findings_of,
    info_of,
    initializer,
    job,
    runtime,
    trainjob,
)


def errors(value: dict[str, Any], new: TrainJob, old: TrainJob | None = None) -> list[tuple[str, str]]:
    return errors_of(findings_of(JobSet(dependencies()), info_of(value, new), new, old))


NO_MOUNT = job("dataset-initializer", "dataset-initializer", container("dataset-initializer"))
NO_CONTAINER = job("dataset-initializer", "dataset-initializer", container("other"))


@pytest.mark.parametrize(
    ("jobs", "refused"),
    [
        pytest.param([initializer("dataset-initializer")], False, id="all there"),
        pytest.param([job()], True, id="no job"),
        pytest.param([NO_CONTAINER], True, id="no container"),
        pytest.param([NO_MOUNT], True, id="no mount"),
        pytest.param([{**initializer("dataset-initializer"), "name": "other"}], True, id="by name, not by ancestor"),
    ],
)
def test_an_initializer_should_have_its_place_in_the_runtime(jobs: list[Any], refused: bool) -> None:
    wanted = trainjob(initializer={"dataset": {"storageUri": "hf://a"}})
    assert errors(runtime(*jobs), wanted) == [("INVALID", "spec.runtimeRef")] * refused


def test_both_initializers_should_be_judged() -> None:
    wanted = trainjob(initializer={"dataset": {}, "model": {}})
    assert errors(runtime(), wanted) == [("INVALID", "spec.runtimeRef")] * 2
    assert errors(runtime(), trainjob(initializer={})) == []


@pytest.mark.parametrize(
    ("manager", "refused"),
    [
        ("acme.io/placement", False),
        ("kueue.x-k8s.io/manager", False),
        ("a/b/c", False),
        ("localhost/x", False),
        ("acme.io", True),
        ("acme.io/", True),
        ("/x", True),
        ("Acme.io/x", True),
        ("-a.io/x", True),
        ("a..io/x", True),
        ("acme.io/a b", True),
        ("a" * 251 + "/b", False),
    ],
)
def test_a_manager_should_be_a_path_under_a_domain(manager: str, refused: bool) -> None:
    found = errors(runtime(), trainjob(runtimePatches=[{"manager": manager}]))
    assert found == [("INVALID", "spec.runtimePatches.manager")] * refused


PATCHED: dict[str, Any] = {"runtimePatches": [{"manager": "a.io/b", "time": "2026-01-01T00:00:00Z"}]}
OVERRIDDEN: dict[str, Any] = {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}]}]}


@pytest.mark.parametrize(("before", "after", "refused"), [
    (False, False, True), (True, False, False), (False, True, False), (True, True, False),
])  # fmt: skip
def test_changes_to_pods_should_need_a_suspension_before_or_after(before: bool, after: bool, refused: bool) -> None:
    old, new = trainjob(suspend=before), trainjob(suspend=after, **PATCHED, **OVERRIDDEN)
    wanted = [("FORBIDDEN", "spec.runtimePatches"), ("FORBIDDEN", "spec.podTemplateOverrides")]
    assert errors(runtime(), new, old) == wanted * refused


def test_the_time_of_a_patch_alone_should_be_no_change() -> None:
    old = trainjob(**PATCHED)
    new = trainjob(runtimePatches=[{"manager": "a.io/b", "time": "2026-02-02T00:00:00Z"}])
    assert errors(runtime(), new, old) == []


def test_the_number_of_nodes_should_change_only_where_the_runtime_is_elastic() -> None:
    old, new = trainjob(trainer={"numNodes": 2}), trainjob(trainer={"numNodes": 3})
    assert errors(runtime(mlPolicy={"torch": {}}), new, old) == [("INVALID", "spec.trainer.numNodes")]
    assert errors(runtime(mlPolicy={"torch": {"elasticPolicy": {"maxNodes": 4}}}), new, old) == []
    assert errors(runtime(mlPolicy={"torch": {}}), new, new) == []
    assert errors(runtime(), trainjob(trainer={}), old) == [("INVALID", "spec.trainer.numNodes")]
    # What the schema lets through, as it does for the original.
    assert errors(runtime(), trainjob(), old) == errors(runtime(), old, trainjob()) == []


@pytest.mark.parametrize(
    ("length", "nodes", "allowed"),
    [
        pytest.param(48, 10, None, id="fits"),
        pytest.param(49, 10, 48, id="too long by one"),
        pytest.param(48, 11, 47, id="one digit more"),
    ],
)
def test_a_name_that_makes_names_of_pods_too_long_should_be_warned_of(
    length: int, nodes: int, allowed: int | None
) -> None:
    # <name>-node-0-<pod>-abcde has 63 characters at most.
    wanted = trainjob("a" * length, trainer={"numNodes": nodes})
    findings = findings_of(JobSet(dependencies()), info_of(runtime(), wanted), wanted)
    assert findings.errors == []
    assert [f"at most {allowed} characters" in warning for warning in findings.warnings] == [True] * (
        allowed is not None
    )


def test_the_longest_name_of_an_elastic_job_should_count() -> None:
    elastic = runtime(mlPolicy={"torch": {"elasticPolicy": {"maxNodes": 1000}}})
    wanted = trainjob("a" * 47)
    assert findings_of(JobSet(dependencies()), info_of(elastic, wanted), wanted).warnings != []
    assert findings_of(JobSet(dependencies()), info_of(runtime(), wanted), wanted).warnings == []
