"""docs/parity.md names a test for every difference; those tests must exist."""

import re
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1]
TEXT = (UNIT.parents[1] / "docs" / "parity.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(test_\w+)`", TEXT)))


def test_every_difference_should_name_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| what ktrainer does")]
    assert len(rows) > 30
    assert [row for row in rows if ".py::test_" not in row] == []


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_should_exist(file: str, name: str) -> None:
    assert f"def {name}(" in (UNIT / file).read_text()


@pytest.mark.parametrize("case", re.findall(r"\(`([\w-]+)`\)", TEXT))
def test_a_named_golden_case_should_exist(case: str) -> None:
    assert (UNIT / "golden" / f"{case}.json").exists()
