"""The `ktrainer` program: the list of its commands, and the one place that reads `sys.argv`.

A command is imported only when it is asked for, so that `ktrainer version` stays instant.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ktrainer import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES_HELP = "a file of YAML or JSON documents (TrainJobs, runtimes, and objects that they need), or - for the input"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole program; its help text teaches the commands."""
    parser = argparse.ArgumentParser(
        prog="ktrainer",
        description="The control plane of Kubeflow Trainer V2: turns TrainJobs into JobSets, keeps their status true.",
    )
    parser.add_argument("--version", action="version", version=f"ktrainer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("version", help="print the version and exit", description="Print the version and exit.")
    render = commands.add_parser(
        "render",
        help="show what the controller would apply",
        description="Show what the controller would apply for the TrainJobs in files, by the controller's own code.",
        epilog="Exit code: 0 fine, 1 findings, 2 usage or unreadable input, 3 the cluster cannot be reached.",
    )
    _add_input(render)
    render.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="the format (default: yaml)")
    validate = commands.add_parser(
        "validate",
        help="judge TrainJobs and runtimes",
        description="Judge the TrainJobs and runtimes in files as the webhook would.",
        epilog="Exit code: 0 fine, 1 findings, 2 usage or unreadable input, 3 the cluster cannot be reached.",
    )
    _add_input(validate)
    return parser


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--filename", dest="files", metavar="FILE", action="extend", nargs="+", required=True, help=_FILES_HELP
    )
    parser.add_argument(
        "--offline", action="store_true", help="ask no cluster: what is not in the files does not exist"
    )
    parser.add_argument("-n", "--namespace", default="default", help="the namespace of what names none")
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; argparse itself exits with 2 on wrong usage."""
    arguments = build_parser().parse_args(argv)
    if arguments.command == "version":
        print(f"ktrainer {__version__}")
        return 0
    from ktrainer.cli import render

    return render.run(arguments)
