"""A world for leader election: processes that run the real `LeaseElector`, a store with compare-and-swap, and faults.

Discrete events in virtual time. Each process has an event loop of its own, reduced to timers and callbacks, whose clock
runs at a speed of its own and goes on while the process is paused. Requests and answers travel as messages that may
be slow, lost or doubled; a request that was given up still arrives. Nothing here decides about leases but the server.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import orjson
from prometheus_client import CollectorRegistry

from ktrainer.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import Election, LeaseSettings
from ktrainer.machinery.election.leader import LeaseElector, LeaseLost, NotLeading
from ktrainer.machinery.election.metrics import LeaderMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextvars import Context

    from ktrainer.kube.identity import Resource

KEY = ObjectKey("system", "trainer")
RESTART_SECONDS = 1.0
"""How long it takes until a process that ended runs again."""
QUICK_SECONDS = 0.02
"""The longest that a message takes that is not slow."""
LATE_SECONDS = 6.0
"""What a late message takes: more than a request may take."""


class Violation(AssertionError):
    """Two processes passed the fence at one instant."""


@dataclass(frozen=True)
class Fault:
    """Something bad that happens to one process for a while."""

    kind: str
    """pause, partition, crash (without a word) or stop (gracefully); the latter two are followed by a restart."""
    node: int
    at: float
    seconds: float


@dataclass(frozen=True)
class Weather:
    """How the network treats a message while faults are on."""

    lost: float = 0.0
    """The share of messages that never arrive."""
    doubled: float = 0.0
    """The share of requests that arrive twice."""
    slow: float = 0.0
    """The share of messages that take up to `slow_seconds`."""
    slow_seconds: float = 20.0


@dataclass(frozen=True)
class Schedule:
    """One story: everything that distinguishes it from others, so that it can be told again."""

    rates: tuple[float, ...]
    """How fast the clock of each process runs; as many as there are processes."""
    weather: Weather = field(default_factory=Weather)
    faults: tuple[Fault, ...] = ()
    calm_at: float = 60.0
    """When all faults are over."""
    fates: tuple[str, ...] = ()
    """What becomes of the first messages since `fates_at`: each is quick, lost or late (too late for its sender)."""
    fates_at: float = 0.0
    seed: int = 0


class LeaseServer:
    """The one Lease, with resourceVersions and optimistic concurrency."""

    def __init__(self) -> None:
        self.version = 0
        self.document: dict[str, Any] | None = None

    def get(self) -> bytes:
        if self.document is None:
            raise NotFound(404, "NotFound", "no such lease")
        return orjson.dumps(self.document)

    def create(self, body: bytes) -> bytes:
        if self.document is not None:
            raise AlreadyExists(409, "AlreadyExists", "there is one")
        return self._store(body)

    def update(self, body: bytes) -> bytes:
        if self.document is None:
            raise NotFound(404, "NotFound", "no such lease")
        if orjson.loads(body)["metadata"]["resourceVersion"] != self.document["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "somebody was faster")
        return self._store(body)

    def _store(self, body: bytes) -> bytes:
        self.version += 1
        document: dict[str, Any] = orjson.loads(body)
        document["metadata"]["resourceVersion"] = str(self.version)
        self.document = document
        return orjson.dumps(document)


class _NodeLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as tasks, futures, sleep and timeout need."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._sequence = 0

    def time(self) -> float:
        return self._time()

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Processes that crash leave tasks and futures behind; that of a living one is looked at after each step."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def call_soon(  # type: ignore[override] # the stubs spell the arguments as a TypeVarTuple
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override] # as above
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override] # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are skipped when their time comes."""

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.Task(coroutine, loop=self)

    def run(self) -> float | None:
        """Run all that can run now; return when the next timer is due."""
        timers, ready = self._timers, self._ready
        now = self._time() + 1e-9
        while timers and (timers[0][0] <= now or timers[0][2].cancelled()):
            ready.append(heapq.heappop(timers)[2])
        asyncio._set_running_loop(self)
        try:
            while ready:
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)
        return timers[0][0] if timers else None


class Node:
    """One replica: its process, its clock, and what happens to it."""

    def __init__(self, world: World, number: int, rate: float) -> None:
        self._world = world
        self._number = number
        self._rate = rate
        self._origin = world.random.uniform(0, 1e6)
        self._wall = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=world.random.randint(-1000, 1000))
        self._starts = 0
        self._paused_until = 0.0
        self._inbox: list[Callable[[], None]] = []
        self._wake_at: float | None = None
        self._is_away = False
        """Between the end of a process and its restart."""
        self.partitioned_until = 0.0
        self._task: asyncio.Task[None] | None = None
        """The process, once it has had a chance to do something."""
        self._start()
        world.at(0.0, self.step)

    def monotonic(self) -> float:
        return self._origin + self._world.now * self._rate

    def now(self) -> datetime:
        return self._wall + timedelta(seconds=self._world.now)

    @property
    def passes_fence(self) -> bool:
        try:
            self.elector.fence()
        except NotLeading:
            return False
        return True

    def _start(self) -> None:
        self._starts += 1
        self._is_away = False
        settings = LeaseSettings(KEY, f"node{self._number}_{self._starts}")
        self.elector = LeaseElector(
            _Wire(self, self._world),
            Election(settings, self._world.random),
            clock=self,
            metrics=LeaderMetrics(CollectorRegistry(auto_describe=False), KEY.name),
            notify=lambda note: None,
        )
        self.loop = _NodeLoop(self.monotonic)  # type: ignore[abstract] # nobody calls the rest
        self._task = None

    def _restart(self) -> None:
        self._start()
        self.step()

    async def _run_process(self, elector: LeaseElector) -> None:
        try:
            await elector.run(lambda: None)
        except (LeaseLost, asyncio.CancelledError):
            self._restart_in(RESTART_SECONDS)

    def _restart_in(self, seconds: float) -> None:
        self._is_away = True
        self._world.at(min(self._world.now + seconds, max(self._world.now, self._world.calm_at) + 1), self._restart)

    def step(self) -> None:
        """Let the process do what it can, unless it is paused or gone."""
        world = self._world
        if self._is_away or world.now < self._paused_until:
            return
        if self._task is None:
            self._task = self.loop.start(self._run_process(self.elector))
        due_at = self.loop.run()
        world.check(self)
        if self._task.done():
            self._task.result()
        elif due_at is not None:
            self._wake(due_at)

    def _wake(self, due_at: float) -> None:
        world = self._world
        wake_at = (due_at - self._origin) / self._rate
        if self._wake_at is None or not world.now < self._wake_at <= wake_at:
            self._wake_at = max(wake_at, world.now)
            world.at(self._wake_at, self.step)

    def deliver(self, message: Callable[[], None]) -> None:
        """Hand an answer to the process; while it is paused it waits in the socket."""
        if self._world.now < self._paused_until:
            self._inbox.append(message)
        else:
            message()
            self.step()

    def suffer(self, fault: Fault) -> None:
        until = min(fault.at + fault.seconds, self._world.calm_at)
        if fault.kind == "partition":
            self.partitioned_until = until
        elif self._is_away:
            return
        elif fault.kind == "pause":
            self._paused_until = until
            self._world.at(until, self._resume)
        elif fault.kind == "crash" or self._task is None:
            self.elector._election.resign()
            self._restart_in(fault.seconds)
        else:
            self._task.cancel()
            self.step()

    def _resume(self) -> None:
        if self._world.now < self._paused_until:
            return
        messages, self._inbox = self._inbox, []
        self._world.random.shuffle(messages)
        for message in messages:
            message()
        self.step()


class _Wire:
    """The `LeaseClient` of one process: requests and answers as messages."""

    def __init__(self, node: Node, world: World) -> None:
        self._node = node
        self._world = world

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        return await self._send(self._world.server.get)

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        return await self._send(lambda: self._world.server.create(body))

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        return await self._send(lambda: self._world.server.update(body))

    def _send(self, request: Callable[[], bytes]) -> asyncio.Future[bytes]:
        answer: asyncio.Future[bytes] = self._node.loop.create_future()
        for delay in self._world.request_delays(self._node):
            self._world.at(self._world.now + delay, lambda: self._arrive(request, answer))
        return answer

    def _arrive(self, request: Callable[[], bytes], answer: asyncio.Future[bytes]) -> None:
        result: bytes | ApiError
        try:
            result = request()
        except ApiError as error:
            result = error
        delay = self._world.delay(self._node)
        if delay is not None:
            self._world.at(self._world.now + delay, lambda: self._node.deliver(lambda: _settle(answer, result)))


def _settle(answer: asyncio.Future[bytes], result: bytes | ApiError) -> None:
    if answer.done():
        return
    if isinstance(result, ApiError):
        answer.set_exception(result)
    else:
        answer.set_result(result)


class World:
    """All processes, the server and the time."""

    def __init__(self, schedule: Schedule) -> None:
        self.now = 0.0
        self.random = Random(schedule.seed)
        self.server = LeaseServer()
        self.calm_at = schedule.calm_at
        self._weather = schedule.weather
        self._fates = deque(schedule.fates)
        self._fates_at = schedule.fates_at
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self.nodes = [Node(self, number, rate) for number, rate in enumerate(schedule.rates)]
        for fault in schedule.faults:
            self.at(fault.at, partial(self.nodes[fault.node].suffer, fault))

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Let something happen at a time that is not past."""
        self._sequence += 1
        heapq.heappush(self._events, (time, self._sequence, action))

    def run_until(self, time: float) -> Iterator[None]:
        """Let time pass, event by event; raises Violation as soon as two processes pass the fence."""
        while self._events and self._events[0][0] <= time:
            self.now, _, action = heapq.heappop(self._events)
            action()
            yield
        self.now = time

    def check(self, stepped: Node) -> None:
        """A fence opens only by what its own process does: so nobody else's may be open after such a step."""
        if stepped.passes_fence and any(node.passes_fence for node in self.nodes if node is not stepped):
            raise Violation(f"at {self.now:.3f} s more than one process passes the fence")

    def leader(self) -> int | None:
        """Return the number of the process that passes the fence."""
        return next((number for number, node in enumerate(self.nodes) if node.passes_fence), None)

    def request_delays(self, node: Node) -> list[float]:
        """Return after which delays a request arrives: none, one or two."""
        copies = 2 if self._is_stormy and self.random.random() < self._weather.doubled else 1
        delays = [self.delay(node) for _ in range(copies)]
        return [delay for delay in delays if delay is not None]

    def delay(self, node: Node) -> float | None:
        """Return how long a message takes that is sent now, or None when it is lost."""
        quick = self.random.uniform(0.001, QUICK_SECONDS)
        if not self._is_stormy:
            return quick
        if self._fates and self.now >= self._fates_at:
            return {"quick": quick, "lost": None, "late": LATE_SECONDS}[self._fates.popleft()]
        if self.now < node.partitioned_until or self.random.random() < self._weather.lost:
            return None
        if self.random.random() < self._weather.slow:
            return min(self.random.uniform(0, self._weather.slow_seconds), self.calm_at - self.now)
        return quick

    @property
    def _is_stormy(self) -> bool:
        return self.now < self.calm_at
