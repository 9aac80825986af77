"""Who wants to know how long plugins take, and whether they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Record = Callable[[float, bool], None]
"""Takes the seconds that a plugin took at one extension point, and whether it failed."""


class Observer(Protocol):
    """Is asked for a record once for each plugin and point, when the framework is built."""

    def record_of(self, plugin: str, point: str) -> Record:
        """Return what is called after each run of the plugin at the point."""
        ...


class Unobserved:
    """Nobody wants to know."""

    def record_of(self, plugin: str, point: str) -> Record:
        """Return what does nothing."""
        return _ignore


def _ignore(seconds: float, has_failed: bool) -> None:
    pass
