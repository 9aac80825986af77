"""The `ktrainer` program: the list of its commands, and the one place that reads `sys.argv`.

A command is imported only when it is asked for, so that `ktrainer version` stays instant.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ktrainer import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole program; its help text teaches the commands."""
    parser = argparse.ArgumentParser(
        prog="ktrainer",
        description="The control plane of Kubeflow Trainer V2: turns TrainJobs into JobSets, keeps their status true.",
    )
    parser.add_argument("--version", action="version", version=f"ktrainer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("version", help="print the version and exit", description="Print the version and exit.")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; argparse itself exits with 2 on wrong usage."""
    build_parser().parse_args(argv)
    print(f"ktrainer {__version__}")
    return 0
