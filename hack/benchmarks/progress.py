"""What a benchmark tells on its standard error while it works, so that whoever waits knows what for."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_Item = TypeVar("_Item")

INTERVAL_SECONDS: Final = 5.0
"""How often it tells how far it has got."""


def say(text: str) -> None:
    """Tell what is being done."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """How much of something is done, told once in a while."""

    def __init__(
        self, total: int, tell: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._tell = tell
        self._clock = clock
        self._next_at = clock() + INTERVAL_SECONDS

    def reached(self, count: int) -> None:
        """Take note that so many are done."""
        now = self._clock()
        if now >= self._next_at and count < self._total:
            self._next_at = now + INTERVAL_SECONDS
            self._tell(f"  {count:,} of {self._total:,}")


def counted(items: Sequence[_Item]) -> Iterator[_Item]:
    """The items one by one, telling how many have been taken."""
    progress = Progress(len(items))
    for count, item in enumerate(items):
        progress.reached(count)
        yield item
