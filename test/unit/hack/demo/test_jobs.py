from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.jobs import EXAMPLES, RUNTIMES, read_examples, row_of
from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import render
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
FILES = sorted(RUNTIMES.glob("*-*.yaml"))


def trainjob(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T12:00:00Z"},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}},
        "status": status,
    }


def test_every_shipped_runtime_should_have_an_example() -> None:
    assert [path.name for path in sorted(EXAMPLES.glob("*.yaml"))] == [path.name for path in FILES]
    for path in EXAMPLES.glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["spec"]["runtimeRef"] == {"name": path.stem}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_should_be_built_as_it_is_and_with_its_patch_for_fake_nodes(path: Path) -> None:
    (patched,) = [each for each in read_examples() if each["spec"]["runtimeRef"]["name"] == path.stem]
    for example in (yaml.safe_load((EXAMPLES / path.name).read_text()), patched):
        documents = [Document("file", 1, yaml.safe_load(path.read_text())), Document("file", 2, example)]
        given = Dependencies(
            reader=DocumentReader(documents), make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys
        )
        made = run_now(render(documents, build_training(given), "default"))
        assert [error for report in made.reports for error in report.errors] == []
        assert "JobSet" in {each["kind"] for each in made.objects}


def test_jobs_that_serve_another_should_outlive_it() -> None:
    (mpi,) = [each for each in read_examples() if each["metadata"]["name"] == "mlx"]
    jobs = mpi["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    lengths = {
        job["name"]: int(job["template"]["spec"]["template"]["metadata"]["annotations"]["fake-node/runs-for"][:-1])
        for job in jobs
    }
    assert lengths["node"] > 10 * lengths["launcher"]


def test_a_row_should_tell_how_a_trainjob_does() -> None:
    jobs = [{"name": "node", "active": 1, "succeeded": 0}, {"name": "data", "active": 0, "succeeded": 1}]
    row = row_of(trainjob(state="Running", jobsStatus=jobs), NOW)
    assert (row.name, row.runtime, row.state, row.nodes) == ("a", "torch", "Running", 2)
    assert row.pods == "active: node; succeeded: data"
    assert (row.note, row.seconds) == ("", 30)


def test_the_time_of_a_trainjob_should_stand_still_when_it_has_ended() -> None:
    assert row_of(trainjob(state="Complete", completionTime="2026-01-01T12:00:07Z"), NOW).seconds == 7


@pytest.mark.parametrize(
    "status, note",
    [
        pytest.param({"firstFailure": {"reason": "OOMKilled", "pod": "p"}}, "OOMKilled in p", id="first failure"),
        pytest.param(
            {"conditions": [{"type": "Failed", "status": "True", "reason": "R", "message": "m"}]}, "R: m", id="failed"
        ),
        pytest.param(
            {"conditions": [{"type": "ResourcesReady", "status": "False", "reason": "R", "message": "m"}]},
            "R: m",
            id="not applied",
        ),
        pytest.param(
            {"conditions": [{"type": "ResourcesReady", "status": "True", "reason": "R", "message": "m"}]}, "", id="well"
        ),
    ],
)
def test_a_row_should_tell_what_is_wrong(status: dict[str, Any], note: str) -> None:
    assert row_of(trainjob(**status), NOW).note == note


def test_a_trainjob_without_status_should_have_no_state() -> None:
    assert row_of(trainjob(), NOW).state == ""
