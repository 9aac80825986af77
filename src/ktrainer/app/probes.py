"""The paths of the probes, as the configuration names them. A name that cannot be used is warned of, and not used.

The original takes any name, and serves /readyz and /healthz whatever the file says: its files must be good here, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from ktrainer.api.configuration import Health

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger(__name__)

_NAME: Final = re.compile(r"/?([A-Za-z0-9._~-]+)")


class Endpoints(NamedTuple):
    """The names of the two probes, without a slash."""

    readiness: str
    liveness: str


def decide_endpoints(health: Health) -> Endpoints:
    """The names to serve the probes under."""
    default = Endpoints(*_names_of(Health()))
    wanted = Endpoints(*_names_of(health))
    for field, name in wanted._asdict().items():
        if not name:
            _log.warning("no part of a path, such as readyz: the default is used", field=f"health.{field}EndpointName")
    chosen = Endpoints(wanted.readiness or default.readiness, wanted.liveness or default.liveness)
    if chosen.readiness == chosen.liveness:
        _log.warning("two probes of one name: the defaults are used", field="health.livenessEndpointName")
        return default
    return chosen


def _names_of(health: Health) -> Iterator[str]:
    for name in (health.readiness_endpoint_name, health.liveness_endpoint_name):
        match = _NAME.fullmatch(name)
        yield match[1] if match else ""
