"""The parts of the kit put together as nearly every program wants them: connections, caches, controllers, webhooks.

It decides nothing; it joins what the other modules are, in the manager's order. Make it where an event loop runs.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from ktrainer.aio.clock import Clock, SystemClock
from ktrainer.aio.lag import LagMonitor
from ktrainer.aio.signals import ProcessTerminator, StopSignals
from ktrainer.client.client import FENCED_WRITE_SECONDS
from ktrainer.client.connect import connect
from ktrainer.client.events.body import ObjectReference, Reporter
from ktrainer.client.events.recorder import EventRecorder
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.written import WrittenVersions
from ktrainer.machinery.control.controller import Controller, ControllerSettings, Reconcile
from ktrainer.machinery.control.metrics import ControllerMetrics
from ktrainer.machinery.election.election import Election, LeaseSettings, LeaseTimes
from ktrainer.machinery.election.leader import LeaseElector, build_identity
from ktrainer.machinery.election.metrics import LeaderMetrics
from ktrainer.machinery.manager import GRACE_SECONDS, Manager
from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.ratelimiter import ExponentialLimiter
from ktrainer.machinery.queue.workqueue import WorkQueue
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.address import parse_address
from ktrainer.machinery.serving.health import HealthChecks
from ktrainer.machinery.serving.healthserver import build_health_server
from ktrainer.machinery.serving.looplag import LoopLag
from ktrainer.machinery.serving.metricsserver import build_metrics_server
from ktrainer.machinery.serving.scrapeauth import ScrapeAuthorizer
from ktrainer.machinery.serving.selfchecks import DeafnessCheck, check_election_reachable, check_renewal, check_synced

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from ktrainer.aio.signals import Terminator
    from ktrainer.client.config.config import ConnectionConfig
    from ktrainer.kube.identity import Resource
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.objects import T
    from ktrainer.machinery.cache.source import View
    from ktrainer.machinery.serving.httpserver import HttpServer


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What distinguishes one program from another."""

    component: str
    """The program's name, in its user agent, its events and its metrics."""
    namespace: str = "default"
    """Where the program's own objects are."""
    lease_name: str = ""
    """The lease that only one replica holds; without it every replica leads."""
    lease_namespace: str = ""
    """Where that lease is, if not with the program's other objects."""
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    health_address: str = "0"
    """Where probes are answered; "0" is nowhere."""
    liveness_endpoint: str = "healthz"
    readiness_endpoint: str = "readyz"
    qps: float = 50.0
    """Requests a second, for each kind of resource."""
    burst: int = 100
    """Requests at once, for each kind of resource."""
    grace_seconds: float = GRACE_SECONDS
    """How long an orderly stop may take."""


class Operator:
    """One program of the kit; what it shall do is added before `run`."""

    def __init__(
        self,
        config: ConnectionConfig,
        settings: OperatorSettings,
        *,
        writes: Iterable[Resource] = (),
        clock: Clock | None = None,
        terminator: Terminator | None = None,
    ) -> None:
        """`writes` are the resources of which writes will be recorded in `written`."""
        self.clock = clock or SystemClock()
        self.random = Random()
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.settings = settings
        terminator = terminator or ProcessTerminator()
        self._identity = build_identity(socket.gethostname())
        self._signals = StopSignals(settings.grace_seconds, terminator)
        self._elector: LeaseElector | None = None
        times = settings.lease_times
        self.connection = connect(
            config,
            component=settings.component,
            clock=self.clock,
            registry=self.registry,
            qps=settings.qps,
            burst=settings.burst,
            fence=self._fence if settings.lease_name else None,
            fenced_write_seconds=min(FENCED_WRITE_SECONDS, times.lease_seconds - times.renew_deadline_seconds),
            lease_seconds=times.request_seconds,
        )
        reporter = Reporter(settings.component, self._identity)
        self.recorder = EventRecorder(self.connection.unfenced, reporter, clock=self.clock, random=self.random)
        if settings.lease_name:
            self._elector = self._build_elector()
        self.manager = Manager(
            self._signals, elector=self._elector, terminator=terminator, grace_seconds=settings.grace_seconds
        )
        self.written = WrittenVersions(self.registry, writes)
        self.cache = Cache(
            self.connection.cache_client,
            clock=self.clock,
            random=self.random,
            metrics=CacheMetrics(self.registry, self.clock),
            written=self.written,
        )
        self._queue_metrics = QueueMetrics(self.registry, self.clock)
        self._controller_metrics = ControllerMetrics(self.registry)
        self.healthz = HealthChecks(settings.liveness_endpoint)
        self.readyz = HealthChecks(settings.readiness_endpoint)
        self._add_background(terminator)
        self._add_checks()

    def informer(self, view: View[T]) -> Informer[T]:
        """Return the informer of a view; it starts with the program."""
        return self.cache.register(view)

    def controller(self, settings: ControllerSettings, reconcile: Reconcile) -> WorkQueue[ObjectKey]:
        """Add a controller that works while this replica leads, and return its queue for handlers to add keys to."""
        limiter = ExponentialLimiter[ObjectKey](self.random)
        queue = WorkQueue[ObjectKey](settings.name, limiter=limiter, clock=self.clock, metrics=self._queue_metrics)
        controller = Controller(settings, reconcile, queue, metrics=self._controller_metrics, clock=self.clock)
        self.manager.add(Stage.LEADER, Runnable(settings.name, controller.run, stop=controller.stop))
        return queue

    def recorder_of(self, controller: str) -> EventRecorder:
        """Add a recorder of events that go by the name of one controller, not by that of the program.

        They are for work that only the leader does, and like that work stop at the fence.
        """
        recorder = EventRecorder(
            self.connection.client, Reporter(controller, self._identity), clock=self.clock, random=self.random
        )
        name = f"event recorder of {controller}"
        self.manager.add(Stage.BACKGROUND, Runnable(name, recorder.run, stop=recorder.stop))
        return recorder

    def serve_metrics(self, address: str, context: ssl.SSLContext | None = None, *, authorized: bool = False) -> None:
        """Serve metrics, unless the address is "0": over TLS, or on the loopback interface where there is no context.

        `authorized` asks of readers a token with leave to read. Raises ValueError where that would be without TLS.
        """
        authorizer = ScrapeAuthorizer(self.connection.unfenced, self.clock, self.random) if authorized else None
        if parsed := parse_address(address):
            self._serve(build_metrics_server(parsed, self.registry, context=context, authorizer=authorizer))

    def request_stop(self) -> None:
        """Ask `run` to come to its orderly end, as a SIGTERM does."""
        self._signals.request_stop()

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT; raises what ended it where that was something else."""
        try:
            with self._signals:
                await self.manager.run()
        finally:
            await self.connection.close()

    def _fence(self) -> None:
        if self._elector is not None:
            self._elector.fence()

    def _build_elector(self) -> LeaseElector:
        settings = self.settings
        key = ObjectKey(settings.lease_namespace or settings.namespace, settings.lease_name)
        lease = ObjectReference("coordination.k8s.io/v1", "Lease", key.namespace, key.name, "")
        return LeaseElector(
            self.connection.lease_client,
            Election(LeaseSettings(key, self._identity, settings.lease_times), self.random),
            clock=self.clock,
            metrics=LeaderMetrics(self.registry, settings.lease_name),
            notify=lambda note: self.recorder.record(lease, "Normal", "LeaderElection", "LeaderElection", note),
        )

    def _add_background(self, terminator: Terminator) -> None:
        lag = LoopLag(LagMonitor(self.clock), self.registry, terminator)
        self.healthz.add("event-loop", lag.check)
        self.manager.add(Stage.BACKGROUND, Runnable("event recorder", self.recorder.run, stop=self.recorder.stop))
        self.manager.add(Stage.BACKGROUND, Runnable("event loop lag", lag.run))
        self.manager.add(Stage.CACHES, Runnable("caches", self.cache.run, wait_ready=self.cache.wait_synced))
        if health := parse_address(self.settings.health_address):
            self._serve(build_health_server(health, [self.healthz, self.readyz]))

    def _serve(self, server: HttpServer) -> None:
        self.manager.add(Stage.SERVERS, Runnable(server.name, server.run, wait_ready=server.wait_listening))

    def _add_checks(self) -> None:
        elector, cache = self._elector, self.cache
        deafness = DeafnessCheck(
            lambda: {each.view.name: each for each in cache.informers},
            lambda: None if elector is None else elector.answered_at,
            self.clock,
        )
        self.healthz.add("informers", deafness)
        self.healthz.add("tasks", self.manager.check_tasks)
        self.readyz.add("stopping", self.manager.check_stopping)
        self.readyz.add("caches", lambda: check_synced(cache))
        if elector is not None:
            self.healthz.add("lease", lambda: check_renewal(elector))
            self.readyz.add("election", lambda: check_election_reachable(elector))
