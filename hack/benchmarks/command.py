"""What the benchmarks have in common as commands: help, the table at the end, the exit code, and an orderly Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from benchmarks.figure import print_figures
from controlplane.problem import told_to_the_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.figure import Figure


def build_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The parser of a benchmark's command line."""
    return argparse.ArgumentParser(
        prog=f"hack/bench/{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Prints each figure beside its target; the exit code is 1 where one is missed. Figures of time want a"
        "\nmachine that has nothing else to do. Ctrl-C leaves nothing behind.",
    )


def run(measure: Callable[[], Sequence[Figure]]) -> NoReturn:
    """Measure, print the table, and exit with 1 where a target is missed."""
    with told_to_the_user():
        sys.exit(print_figures(measure()))
    raise AssertionError
