"""docs/faults.md tells of every fault scenario, and names the tests of every property; they must exist."""

import re
from pathlib import Path

import pytest

TEST = Path(__file__).parents[2]
TEXT = (TEST.parent / "docs" / "faults.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT)))


def rows_of(letter: str) -> dict[str, str]:
    return dict(re.findall(rf"(?m)^\| ({letter}\d+) (\|.*)$", TEXT))


def test_the_scenarios_should_be_those_that_are_tested() -> None:
    tested = {
        name
        for path in (TEST / "faults").glob("test_*.py")
        for name in re.findall(r"def test_(T\d+)_", path.read_text())
    }
    assert set(rows_of("T")) == tested


def test_every_property_should_name_its_tests() -> None:
    rows = rows_of("P")
    assert list(rows) == [f"P{number}" for number in range(1, 15)]
    assert [name for name, row in rows.items() if ".py::" not in row] == []


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_should_exist(file: str, name: str) -> None:
    # A state machine is a class that Hypothesis makes.
    assert re.search(rf"(?m)^(?:async )?def {name}\(|^{name} = ", (TEST / file).read_text())
