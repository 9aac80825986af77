"""docs/operations.md names things that must exist under these names."""

import re
from pathlib import Path

import pytest

from ktrainer.api.gates import Gate
from ktrainer.api.trainjobstatus import Reason

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
TEXT = (DOCS / "operations.md").read_text()
HEADINGS = {
    re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"(?m)^#+ (.*)$", TEXT)
}
OF_RESOURCES = (
    Reason.APPLIED,
    Reason.VALIDATION_REJECTED,
    Reason.RUNTIME_NOT_FOUND,
    Reason.RUNTIME_SNAPSHOT_INVALID,
    Reason.APPLY_REFUSED,
    Reason.APPLY_FAILED,
)
OF_FAILURE = (Reason.TRAINING_RUNTIME_NOT_SUPPORTED, Reason.DEADLINE_EXCEEDED, Reason.JOBSET_DELETED)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)]+)\)", TEXT))))
def test_a_link_should_lead_somewhere(target: str) -> None:
    if target.startswith("#"):
        assert target[1:] in HEADINGS
    else:
        assert (DOCS / target).exists()


@pytest.mark.parametrize("folder", sorted(set(re.findall(r"-k (config/\w+)", TEXT))))
def test_a_folder_that_is_applied_should_be_a_kustomization(folder: str) -> None:
    assert (ROOT / folder / "kustomization.yaml").exists()


@pytest.mark.parametrize("file", sorted(set(re.findall(r"-f ([\w/.-]+\.yaml)", TEXT))))
def test_a_file_that_is_created_should_exist(file: str) -> None:
    assert (ROOT / file).exists()


@pytest.mark.parametrize("reason", [*OF_RESOURCES, *OF_FAILURE])
def test_every_reason_should_be_explained(reason: Reason) -> None:
    assert f"`{reason}`" in TEXT


def test_only_gates_that_exist_should_be_named() -> None:
    named = set(re.findall(r"gate `(\w+)`", TEXT))
    # One of them is JobSet's.
    assert named - {"ElasticJobSet"} == set(Gate)
