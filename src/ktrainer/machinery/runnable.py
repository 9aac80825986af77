"""What a manager runs, and when it starts and stops."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Stage(Enum):
    """When something starts, in this order."""

    BACKGROUND = auto()
    """What others need from the start: the event recorder that they report to, the serving certificate."""
    SERVERS = auto()
    """Health and metrics, so that probes get an answer while the rest is starting."""
    CACHES = auto()
    """All that follows reads from them."""
    WEBHOOKS = auto()
    """What others call, on every replica; they drain while the rest stops."""
    OTHERS = auto()
    """What else runs on every replica."""
    WARM_UP = auto()
    """What makes taking over quick."""
    LEADER = auto()
    """What only one process may do; waits until that is us."""


@dataclass(frozen=True, slots=True)
class Runnable:
    """Something that runs until it is stopped; if it ends before, with or without an error, the manager stops."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    wait_ready: Callable[[], Coroutine[Any, Any, object]] | None = None
    """Returns when the next stage may start, and raises when that will never be; None means at once."""
    stop: Callable[[], None] | None = None
    """Asks `run` to come to an end by itself; without it `run` is cancelled."""
