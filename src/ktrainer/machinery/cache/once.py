"""What has been said already, so that a fault that meets thousands of objects or comes back all day fills no log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

LIMIT = 1000
"""How many things are remembered; the oldest is forgotten first, and may then be said again."""


class Once:
    """A bounded set of things that were said."""

    def __init__(self) -> None:
        self._said: dict[Hashable, None] = {}

    def is_new(self, thing: Hashable) -> bool:
        """Whether this was not said before; from now on it was."""
        if thing in self._said:
            return False
        if len(self._said) >= LIMIT:
            del self._said[next(iter(self._said))]
        self._said[thing] = None
        return True
