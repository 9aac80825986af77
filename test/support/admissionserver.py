"""An admission server on loopback for tests, and its callers."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.server import AdmissionServer, ServerOptions
from ktrainer.machinery.certificates.serving import ServingCertificate
from support.certificates import Issuer
from support.httpspeer import Peer, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ktrainer.machinery.admission.hook import Hook


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    server: AdmissionServer
    registry: CollectorRegistry
    issuer: Issuer
    port: int
    task: asyncio.Task[None]

    def connect(self, client: tuple[bytes, bytes] | None = None) -> contextlib.AbstractAsyncContextManager[Peer]:
        return connected(self.port, self.issuer.authority, client=client)

    def count(self, path: str, code: int) -> float | None:
        """How many requests were answered with a status code."""
        labels = {"webhook": path, "code": str(code)}
        return self.registry.get_sample_value("controller_runtime_webhook_requests_total", labels)

    def in_flight(self, path: str) -> float | None:
        return self.registry.get_sample_value("controller_runtime_webhook_requests_in_flight", {"webhook": path})


@contextlib.asynccontextmanager
async def served(
    *hooks: Hook, client_authorities: bytes = b"", client_names: frozenset[str] = frozenset()
) -> AsyncIterator[Served]:
    """Run a server, and stop it at once in the end, however it is doing."""
    # In debug mode asyncio reports every failed handshake as an error.
    asyncio.get_running_loop().set_debug(False)
    issuer = Issuer()
    certificate = ServingCertificate(client_authorities)
    certificate.install(*issuer.pair())
    registry = CollectorRegistry()
    options = ServerOptions(host="127.0.0.1", port=0, client_names=client_names)
    server = AdmissionServer(certificate.context, WebhookMetrics(registry), options)
    for hook in hooks:
        server.register(hook)
    task = asyncio.create_task(server.run())
    try:
        port = await server.wait_listening()
        yield Served(server, registry, issuer, port, task)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
