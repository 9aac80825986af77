"""What a fault scenario measures, beside what it may be at most or must be at least; a pytest plugin prints it all."""

from __future__ import annotations

import os

import pytest

IS_FULL = os.environ.get("FULL") == "1"
"""Whether scenarios run at full length, which takes hours in all; else they are short."""

_LINES = pytest.StashKey[list[str]]()


def scaled(short: int, full: int) -> int:
    """Return how often or how long something is done in this run."""
    return full if IS_FULL else short


class Figures:
    """The figures of one scenario."""

    def __init__(self, scenario: str, lines: list[str]) -> None:
        self._scenario = scenario
        self._lines = lines

    def at_most(self, what: str, value: float, limit: float, unit: str = "") -> None:
        """Print a figure and assert that it is not above its limit."""
        self._print(what, value, "≤", limit, unit)
        assert value <= limit, f"{what}: {value:g} {unit} is more than {limit:g}"

    def at_least(self, what: str, value: float, limit: float, unit: str = "") -> None:
        """Print a figure and assert that it is not below its limit."""
        self._print(what, value, "≥", limit, unit)
        assert value >= limit, f"{what}: {value:g} {unit} is less than {limit:g}"

    def exactly(self, what: str, value: float, expected: float) -> None:
        """Print a figure and assert that it is what it must be."""
        self._print(what, value, "=", expected, "")
        assert value == expected, f"{what}: {value:g} is not {expected:g}"

    def _print(self, what: str, value: float, sign: str, limit: float, unit: str) -> None:
        self._lines.append(f"{self._scenario:5} {what:58} {value:>10.4g} {unit:4} {sign} {limit:g}")


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """The figures of this scenario, named by the test: test_T07_… is T07."""
    lines = request.config.stash.setdefault(_LINES, [])
    name = request.node.name.removeprefix("test_").partition("_")[0]
    return Figures(name, lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(_LINES, [])
    if lines:
        terminalreporter.section("figures of the fault scenarios")
        for line in sorted(lines):
            terminalreporter.write_line(line)
