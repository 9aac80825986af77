"""Puts the progress server together: every replica serves training pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.reviews import Reviews
from ktrainer.statusserver.authorizer import ReportAuthorizer
from ktrainer.statusserver.callers import Callers
from ktrainer.statusserver.desk import Desk
from ktrainer.statusserver.handler import HandlerParts, ProgressHandler
from ktrainer.statusserver.metrics import ProgressMetrics
from ktrainer.statusserver.server import ProgressServer
from ktrainer.statusserver.trainjobs import TrainJobs
from ktrainer.statusserver.writer import ReportWriter

if TYPE_CHECKING:
    from ktrainer.api.configuration import Configuration
    from ktrainer.app.clusterview import ClusterView
    from ktrainer.machinery.operator import Operator
    from ktrainer.machinery.servingcertificates import Certificates


def add_progress_server(
    operator: Operator, view: ClusterView, configuration: Configuration, certificates: Certificates
) -> ProgressServer:
    """Let every replica take reports of progress, once its caches are complete and it has a certificate."""
    clock, settings = operator.clock, configuration.status_server
    # A budget of its own: what pods send must not slow down the controllers.
    client = operator.connection.throttled(settings.qps, settings.burst)
    metrics = ProgressMetrics(operator.registry)
    trainjobs = TrainJobs(view.trainjobs.reader, client)
    desk = Desk(ReportWriter(trainjobs, client), metrics, clock)
    authorizer = ReportAuthorizer(Reviews(client, clock, operator.random), client, clock)
    handler = ProgressHandler(HandlerParts(authorizer, trainjobs, desk, Callers(clock), metrics))
    server = ProgressServer(Address(None, settings.port), certificates.context, handler, desk)

    async def wait_ready() -> None:
        await certificates.wait_ready()
        await server.wait_listening()

    # Pods are callers as API servers are: while they are still sent here, the lease is given back already.
    operator.manager.add(Stage.WEBHOOKS, Runnable("progress", server.run, wait_ready=wait_ready, stop=server.stop))
    return server
