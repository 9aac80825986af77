"""The `/metrics` endpoint: all metrics of a registry in Prometheus' text format.

The values are collected in the event loop, so that they belong together; making text of them takes longer and happens
in a thread. Without TLS the server listens on the loopback interface only, whatever the address says.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.httpserver import HttpServer
from ktrainer.machinery.serving.reviews import Refused

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry, Metric

    from ktrainer.machinery.serving.scrapeauth import ScrapeAuthorizer

_log = structlog.get_logger(__name__)

PATH = "/metrics"


def build_metrics_server(
    address: Address,
    registry: CollectorRegistry,
    *,
    context: ssl.SSLContext | None,
    authorizer: ScrapeAuthorizer | None,
) -> HttpServer:
    """Return the server; `context` None means plain HTTP, `authorizer` None that everybody who gets here may read.

    Raises ValueError for an authorizer without TLS: tokens are not sent in plain text.
    """
    if context is None:
        if authorizer is not None:
            raise ValueError("tokens would be sent in plain text: metrics with authorization need TLS")
        address = _local(address)
    return HttpServer("metrics", address, _Scrapes(registry, authorizer).handle, context=context)


def _local(address: Address) -> Address:
    if address.host is not None and _is_loopback(address.host):
        return address
    _log.warning("metrics without TLS are served on the loopback interface only", address=str(address))
    return Address("localhost", address.port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Scrapes:
    def __init__(self, registry: CollectorRegistry, authorizer: ScrapeAuthorizer | None) -> None:
        self._registry = registry
        self._authorizer = authorizer
        self._turn = asyncio.Lock()
        """One text at a time is made: it takes processor time that others need."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        if request.path != PATH:
            return _refusal(404, "not found")
        if request.method not in {"GET", "HEAD"}:
            return _refusal(405, "only GET and HEAD", Allow="GET, HEAD")
        if self._authorizer is not None:
            try:
                await self._authorizer.check(request.headers.get("Authorization"), PATH)
            except Refused as refusal:
                return _refusal(refusal.status, str(refusal))
        async with self._turn:
            metrics = _Collected(list(self._registry.collect()))
            text = await asyncio.to_thread(generate_latest, metrics)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _refusal(status: int, text: str, **headers: str) -> web.Response:
    response = web.Response(status=status, text=text, headers=headers)
    # Whoever gets no metrics has no reason to stay.
    response.force_close()
    return response


class _Collected:
    """A registry whose values have been taken."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
