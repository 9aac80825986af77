"""Whatever a TrainJob and its runtime say, there are objects or findings, and the inputs stay as they were.

What comes out is the same in every process, whatever the order of its sets.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings

from ktrainer.app.render import validate
from ktrainer.kube.jsonvalue import copy_of
from support.cases import cases
from support.domain import RUNTIMES, TRAINJOBS
from support.rendering import other_process, outcome_of, rendered
from support.validity import assert_valid

HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
BUILT_IN = {"ConfigMap", "Secret", "HorizontalPodAutoscaler"}


def check(value: dict[str, Any]) -> None:
    """Let Kubernetes' own definitions judge an object; what they do not define is judged by its parts."""
    if value["kind"] in BUILT_IN:
        assert_valid(value)
    elif value["kind"] == "JobSet":
        for job in value["spec"]["replicatedJobs"]:
            spec = job["template"]["spec"]
            as_job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
            assert_valid(as_job)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[[list[dict[str, Any]]], bytes]]:
    with other_process(hash_seed=12345) as ask:
        yield ask


@pytest.mark.timeout(1800)
@given(RUNTIMES, TRAINJOBS)
@settings(max_examples=cases(2_000), suppress_health_check=[HealthCheck.too_slow])
def test_there_should_be_objects_or_findings_and_nothing_else(
    elsewhere: Callable[[list[dict[str, Any]]], bytes], runtime: dict[str, Any], job: dict[str, Any]
) -> None:
    inputs = [runtime, HIGH, job]
    before = copy_of(inputs)
    rendering = rendered(*inputs)
    assert inputs == before
    assert rendering.has_errors == (rendering.objects == [])
    event("objects" if rendering.objects else "findings")
    assert outcome_of(rendered(*before)) == outcome_of(rendering)
    assert elsewhere(before) == outcome_of(rendering)
    if rendering.has_errors:
        assert rendered(*inputs, command=validate).has_errors
    for value in rendering.objects:
        check(value)
