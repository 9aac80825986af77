"""The `ktrainer` program: the list of its commands, and the one place that reads `sys.argv`.

A command is imported only when it is asked for, so that `ktrainer version` stays instant.
"""

from __future__ import annotations

import argparse
import gc
import re
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ktrainer import __version__
from ktrainer.cli.output import write_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

UNUSABLE: Final = 2
INTERRUPTED: Final = 130
"""What shells make of a program that Ctrl-C ended."""

_LABEL: Final = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
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
    _add_services(commands)
    render = commands.add_parser(
        "render",
        help="show what the controller would apply",
        description="Show what the controller would apply for the TrainJobs in files, by the controller's own code;"
        " plugins and feature gates are as they are without a configuration.",
        epilog="Exit code: 0 fine, 1 findings, 2 usage or unreadable input, 3 the cluster cannot be reached.",
    )
    _add_input(render)
    render.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="the format (default: yaml)")
    validate = commands.add_parser(
        "validate",
        help="judge TrainJobs and runtimes",
        description="Judge the TrainJobs and runtimes in files as the webhook would; plugins and feature gates are as"
        " they are without a configuration.",
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
    parser.add_argument(
        "-n",
        "--namespace",
        type=_namespace,
        default="default",
        help="the namespace of what names none (default: default)",
    )
    _add_cluster(parser)


def _namespace(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise argparse.ArgumentTypeError(f"not the name of a namespace: {text!r}")
    return text


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster; else $KUBECONFIG, else the pod's service account, else ~/.kube/config",
    )
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")


def _add_services(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands that run until they are told to stop."""
    epilog = (
        "SIGTERM and Ctrl-C stop it in order, a second one at once."
        " Exit code: 0 stopped in order, 1 a fault (the log tells which), 2 usage or unusable configuration."
    )
    manager = commands.add_parser(
        "manager",
        help="run the controllers, the admission webhook, and the servers of progress, metrics and health",
        description="Run the manager: it turns TrainJobs into JobSets, keeps their status true, and judges what users"
        " submit, until it is told to stop.",
        epilog=epilog,
    )
    manager.add_argument("--no-webhook", action="store_true", help="leave admission to `ktrainer webhook`")
    webhook = commands.add_parser(
        "webhook",
        help="run the admission webhook alone",
        description="Run the admission webhook alone, to scale it by itself; see --no-webhook of the manager.",
        epilog=epilog,
    )
    for parser in (manager, webhook):
        parser.add_argument(
            "--config",
            metavar="FILE",
            help="the configuration, a YAML file of kind Configuration (config.trainer.kubeflow.org/v1alpha1);"
            " without it the defaults count",
        )
        _add_cluster(parser)
        parser.add_argument(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            default="",
            help="features to switch on or off, over what the configuration says, such as TrainJobStatus=true",
        )
        parser.add_argument(
            "--log-level",
            choices=("debug", "info", "warning", "error"),
            default="info",
            help="the least important entries of the log (default: info)",
        )
        parser.add_argument(
            "--log-format",
            choices=("json", "console"),
            default="json",
            help="a log for machines or for people (default: json)",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; argparse itself exits with 2 on wrong usage."""
    arguments = build_parser().parse_args(argv)
    if arguments.command == "version":
        return 0 if write_output(f"ktrainer {__version__}\n") else UNUSABLE
    try:
        code: int = load(arguments.command).run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def load(command: str) -> ModuleType:
    """Import what runs a command."""
    # Nearly all that comes with it stays: to look through it for garbage again and again is a tenth of the time.
    gc.disable()
    try:
        return import_module("ktrainer.cli.manager" if command in {"manager", "webhook"} else "ktrainer.cli.render")
    finally:
        gc.enable()
