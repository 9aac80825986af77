from typing import Any

import pytest

from ktrainer.api.labels import DEPRECATED, SUPPORT
from ktrainer.framework.findings import Findings
from ktrainer.kube.fields import ErrorList
from ktrainer.runtime.validation import validate_parts, validate_processes, validate_runtime
from support.training import container, job, runtime, trainjob


def errors_of(spec: dict[str, Any]) -> ErrorList:
    return [*validate_parts(trainjob(**spec)), *validate_processes(trainjob(**spec))]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"trainer": {"numProcPerNode": 0}}, "spec.trainer.numProcPerNode"),
        ({"trainer": {"numProcPerNode": -1}}, "spec.trainer.numProcPerNode"),
        ({"trainer": {"env": [{"name": "A"}, {"name": 1}]}}, "spec.trainer.env[1].name"),
        ({"trainer": {"env": [{"name": "A", "valueFrom": []}]}}, "spec.trainer.env[0].valueFrom"),
        ({"trainer": {"resourcesPerNode": {"limits": {"cpu": "x"}}}}, "spec.trainer.resourcesPerNode.limits.cpu"),
        ({"initializer": {"dataset": {"env": [{"value": "1"}]}}}, "spec.initializer.dataset.env[0].name"),
        ({"initializer": {"model": {"env": [{"value": "1"}]}}}, "spec.initializer.model.env[0].name"),
    ],
)
def test_parts_that_no_model_describes_should_be_checked(spec: dict[str, Any], path: str) -> None:
    assert [str(error.path) for error in errors_of(spec)] == [path]


@pytest.mark.parametrize(
    "spec", [{}, {"trainer": {}}, {"trainer": {"numProcPerNode": 1}}, {"trainer": {"numProcPerNode": "auto"}}]
)
def test_what_is_right_should_pass(spec: dict[str, Any]) -> None:
    assert errors_of(spec) == []


JOBS = "spec.template.spec.replicatedJobs[0]"


@pytest.mark.parametrize(
    ("made", "paths"),
    [
        pytest.param(job(), [], id="trainer"),
        pytest.param(job("node", "trainer", replicas=2), [f"{JOBS}.replicas"], id="two replicas"),
        pytest.param(
            job("node", "trainer", container("x")), [f"{JOBS}.template.spec.template.spec.containers"], id="no node"
        ),
        pytest.param(
            job("x", "dataset-initializer"), [f"{JOBS}.template.spec.template.spec.containers"], id="no initializer"
        ),
        pytest.param(job("x", "model-initializer", container("model-initializer")), [], id="initializer"),
        pytest.param(
            job("x", "trainer", container("x"), replicas=0),
            [f"{JOBS}.replicas", f"{JOBS}.template.spec.template.spec.containers"],
            id="both",
        ),
        pytest.param(job("x", None, container("x"), replicas=2), [], id="no ancestor"),
        pytest.param(job("x", "other", container("x"), replicas=2), [], id="an ancestor that nobody knows"),
    ],
)
def test_jobs_of_a_known_ancestor_should_be_as_plugins_expect_them(made: dict[str, Any], paths: list[str]) -> None:
    findings = validate_runtime("ClusterTrainingRuntime", runtime(made))
    assert [str(error.path) for error in findings.errors] == paths


def test_absent_replicas_should_be_one() -> None:
    made = job()
    del made["replicas"]
    assert validate_runtime("ClusterTrainingRuntime", runtime(made)) == Findings()


def test_rules_of_the_crd_should_be_checked_with_the_jobs() -> None:
    value = runtime(job("node", "trainer", replicas=2), template={"successPolicy": {"operator": "Some"}})
    paths = [str(error.path) for error in validate_runtime("ClusterTrainingRuntime", value).errors]
    assert paths == ["spec.template.spec.successPolicy.operator", f"{JOBS}.replicas"]


def test_what_no_runtime_can_be_read_from_should_be_told_with_its_path() -> None:
    broken = runtime(mlPolicy={"numNodes": 0})
    errors = validate_runtime("ClusterTrainingRuntime", broken).errors
    assert [str(error.path) for error in errors] == ["spec.mlPolicy.numNodes"]


def test_a_deprecated_runtime_should_be_warned_of() -> None:
    value = runtime()
    value["metadata"]["labels"] = {SUPPORT: DEPRECATED}
    findings = validate_runtime("ClusterTrainingRuntime", value)
    assert (findings.errors, len(findings.warnings)) == ([], 1)


@pytest.mark.parametrize("selector", [{"matchLabels": "a"}, {"matchLabels": {"a": 1}}, {"matchExpressions": [1]}])
def test_a_selector_of_another_form_should_be_refused(selector: dict[str, Any]) -> None:
    (error,) = validate_runtime("ClusterTrainingRuntime", runtime(allowedNamespaces=selector)).errors
    assert error.path.text.startswith("spec.allowedNamespaces.match")
