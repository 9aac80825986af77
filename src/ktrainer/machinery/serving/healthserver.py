"""The HTTP endpoints of health checks: `/healthz`, `/readyz` and one path below them for every check.

Takes `?verbose` for all findings, and `?exclude=name`, as often as wanted, for checks to leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from ktrainer.machinery.serving.health import render
from ktrainer.machinery.serving.httpserver import HttpServer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.machinery.serving.address import Address
    from ktrainer.machinery.serving.health import HealthChecks


def build_health_server(address: Address, endpoints: Iterable[HealthChecks]) -> HttpServer:
    """Return the server of all these endpoints, in plain HTTP, since kubelets do not care for certificates."""
    return HttpServer("health", address, _Probes(endpoints).handle)


class _Probes:
    def __init__(self, endpoints: Iterable[HealthChecks]) -> None:
        self._endpoints = {checks.endpoint: checks for checks in endpoints}

    async def handle(self, request: web.BaseRequest) -> web.Response:
        if request.method not in {"GET", "HEAD"}:
            return _response(405, "only GET and HEAD")
        endpoint, _, name = request.path.removeprefix("/").partition("/")
        checks = self._endpoints.get(endpoint)
        if checks is None or (name and name not in checks):
            return _response(404, "no such check")
        if name:
            finding = await checks.run_one(name)
            return _response(200, "ok") if finding.reason is None else _response(500, str(finding))
        excluded = request.query.getall("exclude", [])
        findings = await checks.run(excluded)
        is_healthy = all(finding.reason is None for finding in findings)
        text = render(endpoint, findings, excluded, verbose="verbose" in request.query)
        return _response(200 if is_healthy else 500, text)


def _response(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=text, headers={"X-Content-Type-Options": "nosniff"})
    if status != 200:
        # Whoever does not ask for health has no reason to stay.
        response.force_close()
    return response
