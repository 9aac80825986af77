"""Admission webhooks of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.server import AdmissionServer, ServerOptions
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.health import Unhealthy
from ktrainer.machinery.serving.tlsdial import dial

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.machinery.admission.hook import Hook
    from ktrainer.machinery.operator import Operator
    from ktrainer.machinery.servingcertificates import Certificates


def add_webhooks(
    operator: Operator, certificates: Certificates, hooks: Iterable[Hook], options: ServerOptions | None = None
) -> AdmissionServer:
    """Let every replica of an operator serve these hooks, once its caches are complete and it has a certificate."""
    server = AdmissionServer(certificates.context, WebhookMetrics(operator.registry), options or ServerOptions())
    for hook in hooks:
        server.register(hook)

    async def check() -> None:
        if not server.is_listening:
            raise Unhealthy("does not listen yet")
        try:
            await dial(server.host, server.port)
        except OSError as error:
            raise Unhealthy(f"cannot be called on port {server.port}: {error}")

    async def wait_ready() -> None:
        await certificates.wait_ready()
        await server.wait_listening()

    operator.readyz.add("webhooks", check)
    operator.manager.add(Stage.WEBHOOKS, Runnable("webhooks", server.run, wait_ready=wait_ready, stop=server.stop))
    return server
