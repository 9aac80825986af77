"""The API server as an elector sees it: one Lease, and whatever goes wrong on the way to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from support.electionsim import LeaseServer

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.kube.identity import ObjectKey, Resource

HANG = "hang"
"""A fault: the answer never comes."""

Fault = BaseException | bytes | str | Callable[[], None] | None
"""An error to raise, other bytes to answer, HANG, something to do before the answer leaves, or None for nothing."""


class LeaseApi:
    """A `LeaseClient` straight into a `LeaseServer`; records what it was asked, and when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.server = LeaseServer()
        self.calls: list[tuple[float, str]] = []
        self.faults: list[Fault] = []
        """What becomes of the next requests."""
        self.outage: Fault = None
        """What becomes of all requests when `faults` are used up."""
        self.latency_seconds = 0.0
        """How long every request takes."""
        self.commits_before_fault = False
        """Whether a request takes effect although its answer is spoiled."""

    @property
    def spec(self) -> dict[str, Any]:
        """The record as it is stored."""
        assert self.server.document is not None
        spec: dict[str, Any] = self.server.document["spec"]
        return spec

    def write(self, **spec: Any) -> None:
        """Write into the Lease as a third party."""
        if self.server.document is None:
            document: dict[str, Any] = {"kind": "Lease", "metadata": {"name": "trainer"}, "spec": spec}
            self.server.create(orjson.dumps(document))
        else:
            self.server.update(orjson.dumps(self.server.document | {"spec": self.spec | spec}))

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        return await self._answer("get", self.server.get)

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        return await self._answer("create", lambda: self.server.create(body))

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        return await self._answer("update", lambda: self.server.update(body))

    async def _answer(self, verb: str, act: Callable[[], bytes]) -> bytes:
        self.calls.append((round(self._clock.monotonic(), 3), verb))
        await asyncio.sleep(self.latency_seconds)
        fault = self.faults.pop(0) if self.faults else self.outage
        if fault is None:
            return act()
        if callable(fault):
            fault()
            return act()
        if self.commits_before_fault:
            act()
        if isinstance(fault, BaseException):
            raise fault
        if isinstance(fault, bytes):
            return fault
        await asyncio.Event().wait()
        raise AssertionError("unreachable")
