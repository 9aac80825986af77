"""Telling handlers what happened.

A handler that raises is logged and counted, and goes on being told: neither the informer nor the other handlers suffer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from ktrainer.machinery.cache.objects import CachedObject, T
from ktrainer.machinery.cache.once import Once

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.machinery.cache.record import InformerRecord

_log = structlog.get_logger(__name__)

T_contra = TypeVar("T_contra", bound=CachedObject, contravariant=True)
Listener = TypeVar("Listener")


class Handler(Protocol[T_contra]):
    """Is told of every change of an informer's objects, after the store has it; may see a newer store, never an older.

    The calls must be quick and must not block. They come in order for each object, and an object that vanished and came
    back under the same name is a delete and an add.
    """

    def on_add(self, obj: T_contra, is_initial: bool) -> None:
        """An object is there; `is_initial` if it was when the informer, or the handler, began."""
        ...

    def on_update(self, old: T_contra, new: T_contra) -> None:
        """An object changed, or is shown once more, and then with the same resourceVersion."""
        ...

    def on_delete(self, obj: T_contra, is_final_state_unknown: bool) -> None:
        """An object is gone; if its final state is unknown, this is the last one that was seen."""
        ...


class Registration(Generic[T]):
    """A handler's place at an informer."""

    def __init__(self, handler: Handler[T]) -> None:
        self.handler = handler
        self._synced = asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """Whether the handler was told of every object that was there at the beginning."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    def mark_synced(self) -> None:
        """Say that the handler knows all that was there at the beginning."""
        self._synced.set()


class Distributor(Generic[T]):
    """Tells each of its handlers in turn."""

    def __init__(self, name: str, record: InformerRecord) -> None:
        self._name = name
        self._record = record
        self._once = Once()
        self._registrations: list[Registration[T]] = []
        self._arrivals: list[Callable[[], None]] = []

    def join(self, registration: Registration[T]) -> None:
        """Tell a further handler from now on."""
        self._registrations.append(registration)

    def mark_synced(self) -> None:
        """Say that all handlers know all that was there at the beginning."""
        for registration in self._registrations:
            registration.mark_synced()

    def on_arrival(self, function: Callable[[], None]) -> None:
        """Call a function at every `arrive`."""
        self._arrivals.append(function)

    def arrive(self) -> None:
        """Tell that the server knows the kind now, and did not before; the handlers know what there is of it."""
        for function in self._arrivals:
            self._guard(function, lambda call: call())

    def add(self, obj: T, *, is_initial: bool) -> None:
        """Tell of an object that is there."""
        self._tell(lambda handler: handler.on_add(obj, is_initial))

    def update(self, old: T, new: T) -> None:
        """Tell of a change."""
        self._tell(lambda handler: handler.on_update(old, new))

    def delete(self, obj: T, *, is_final_state_unknown: bool) -> None:
        """Tell of an object that is gone."""
        self._tell(lambda handler: handler.on_delete(obj, is_final_state_unknown))

    def add_to(self, registration: Registration[T], obj: T) -> None:
        """Tell a single handler of an object that has been there before it came."""
        self._guard(registration.handler, lambda handler: handler.on_add(obj, True))

    def _tell(self, call: Callable[[Handler[T]], None]) -> None:
        for registration in self._registrations:
            self._guard(registration.handler, call)

    def _guard(self, listener: Listener, call: Callable[[Listener], None]) -> None:
        try:
            call(listener)
        except Exception as error:  # a handler is not ours; the informer must outlive its bugs
            self._record.handler_errors += 1
            if self._once.is_new((type(listener), type(error))):
                _log.exception("event handler failed", informer=self._name, handler=type(listener).__name__)
