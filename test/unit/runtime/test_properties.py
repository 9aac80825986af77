"""Whatever a TrainJob and its runtime say, there are objects or findings, and the inputs stay as they were."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, event, given, settings

from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import Rendering, render, validate
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies
from ktrainer.kube.jsonvalue import copy_of
from support.cases import cases
from support.domain import RUNTIMES, TRAINJOBS
from support.validity import assert_valid

HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
BUILT_IN = {"ConfigMap", "Secret", "HorizontalPodAutoscaler"}


def rendered(*values: dict[str, Any], command: Any = render) -> Rendering:
    documents = [Document("property", number, value) for number, value in enumerate(values, 1)]
    reader = DocumentReader(documents)
    given = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    made: Rendering = run_now(command(documents, build_training(given), "default"))
    return made


def check(value: dict[str, Any]) -> None:
    """Let Kubernetes' own definitions judge an object; what they do not define is judged by its parts."""
    if value["kind"] in BUILT_IN:
        assert_valid(value)
    elif value["kind"] == "JobSet":
        for job in value["spec"]["replicatedJobs"]:
            spec = job["template"]["spec"]
            as_job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
            assert_valid(as_job)


@pytest.mark.timeout(300)
@given(RUNTIMES, TRAINJOBS)
@settings(max_examples=cases(2_000), suppress_health_check=[HealthCheck.too_slow])
def test_there_should_be_objects_or_findings_and_nothing_else(runtime: dict[str, Any], job: dict[str, Any]) -> None:
    inputs = (runtime, HIGH, job)
    before = copy_of(list(inputs))
    rendering = rendered(*inputs)
    assert list(inputs) == before
    assert rendering.has_errors == (rendering.objects == [])
    event("objects" if rendering.objects else "findings")
    again = rendered(*copy_of(before))
    assert orjson.dumps(again.objects) == orjson.dumps(rendering.objects)
    assert [report.errors for report in again.reports] == [report.errors for report in rendering.reports]
    judged = rendered(*inputs, command=validate)
    if rendering.has_errors:
        assert judged.has_errors
    for value in rendering.objects:
        check(value)


SCRIPT = """
import sys
from ktrainer.cli.main import main
sys.exit(max(main(["render", "--offline", "-o", "json", "-f", file]) for file in sys.argv[1:]))
"""
GOLDEN = Path(__file__).parent.parent / "golden"


def test_the_output_should_be_the_same_whatever_the_hash_seed(tmp_path: Path) -> None:
    for name in ("patch-two-managers", "mpi-gpus", "flux-full", "cosched-mixed", "tune-lora", "init-both"):
        documents = orjson.loads((GOLDEN / f"{name}.json").read_bytes())["input"]
        (tmp_path / f"{name}.yaml").write_bytes(b"\n---\n".join(map(orjson.dumps, documents)))
    files = sorted(map(str, tmp_path.glob("*.yaml")))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *files],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000
