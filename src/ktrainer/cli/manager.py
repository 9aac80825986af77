"""The commands `manager` and `webhook`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from ktrainer import __version__
from ktrainer.api.configuration import Configuration
from ktrainer.api.configurationfile import parse_configuration
from ktrainer.api.gates import open_gates, parse_gates
from ktrainer.app.logging import Format, Level, configure_logging
from ktrainer.app.manager import ProcessPlan, Role, build_manager, find_namespace
from ktrainer.app.process import run_process
from ktrainer.cli.input import problem_of
from ktrainer.client.config.config import ConfigError, load_config
from ktrainer.framework.errors import RegistryError
from ktrainer.kube import fields

if TYPE_CHECKING:
    import argparse

    from ktrainer.api.gates import Gate
    from ktrainer.client.config.config import ConnectionConfig

OK: Final = 0
FAULT: Final = 1
UNUSABLE: Final = 2

_log = structlog.get_logger(__name__)


class Unusable(Exception):
    """What was given on the command line cannot be used; one argument for each finding."""


def run(arguments: argparse.Namespace) -> int:
    """Run one of the two commands until it is told to stop; return its exit code."""
    try:
        configuration = _read_configuration(arguments.config)
        gates = _read_gates(configuration, arguments.feature_gates)
        config = _read_kubeconfig(arguments)
        configure_logging(Level(arguments.log_level), Format(arguments.log_format))
        plan = ProcessPlan(configuration, gates, _role_of(arguments), find_namespace())
        run_process(_serve(config, plan))
    except Unusable as unusable:
        for finding in unusable.args:
            print(f"ktrainer: {finding}", file=sys.stderr)
        return UNUSABLE
    except Exception as error:  # whatever ended it: the log tells, and whoever started us starts us again
        _log.critical("the program ends because of a fault", error=f"{type(error).__name__}: {error}", exc_info=True)
        return FAULT
    return OK


async def _serve(config: ConnectionConfig, plan: ProcessPlan) -> None:
    _log.info(
        "ktrainer starts",
        version=__version__,
        role=plan.role.name.lower(),
        namespace=plan.namespace,
        server=config.server,
        gates=sorted(plan.gates),
    )
    try:
        operator = await build_manager(config, plan)
    except (RegistryError, ConfigError) as error:
        raise Unusable(str(error)) from error
    await operator.run()


def _role_of(arguments: argparse.Namespace) -> Role:
    if arguments.command == "webhook":
        return Role.WEBHOOK
    return Role.CONTROLLERS if arguments.no_webhook else Role.ALL


def _read_configuration(file: str | None) -> Configuration:
    if file is None:
        return Configuration()
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{file}: {problem_of(error)}") from error
    configuration = parse_configuration(text)
    if isinstance(configuration, list):
        raise Unusable(*(f"{file}: {error}" for error in configuration))
    return configuration


def _read_gates(configuration: Configuration, text: str) -> frozenset[Gate]:
    given = parse_gates(fields.Path("--feature-gates"), text)
    if isinstance(given, list):
        raise Unusable(*map(str, given))
    return open_gates(configuration.feature_gates, given)


def _read_kubeconfig(arguments: argparse.Namespace) -> ConnectionConfig:
    try:
        return load_config(Path(arguments.kubeconfig) if arguments.kubeconfig else None, arguments.context)
    except ConfigError as error:
        raise Unusable(str(error)) from error
