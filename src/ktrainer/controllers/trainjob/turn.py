"""When a TrainJob has its next turn."""

from __future__ import annotations

from typing import Final

from ktrainer.machinery.control.reconcile import Result

LONGEST_SECONDS: Final = 86_400.0
"""When a TrainJob that waits for a deadline or its deletion is looked at again at the latest."""
SHORTEST_SECONDS: Final = 0.001


def next_turn(*seconds: float | None) -> Result:
    """The next turn, at the earliest of some times from now; none where nothing is waited for."""
    known = [max(each, SHORTEST_SECONDS) for each in seconds if each is not None]
    return Result(requeue_after=min((*known, LONGEST_SECONDS))) if known else Result()
