"""What the end of a turn means: the one place that tells success, retry, terminal failure and bug from each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ktrainer.client.errors import TransportError
from ktrainer.kube.errors import ApiError
from ktrainer.machinery.control.reconcile import Result, RetryableError, Stale, TerminalError
from ktrainer.machinery.election.leader import NotLeading

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_BEFORE_MAX_SECONDS = 300.0
"""The longest wait that a server may ask for: as long as the longest delay of a key that fails."""

_EXPECTED = (ApiError, TransportError, RetryableError, TerminalError, NotLeading)
"""Failures that say all that there is to say by their message; any other comes with its stack."""


class Ending(StrEnum):
    """How a turn ended, in the words of the log."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    STALE = "stale"
    ERROR = "error"
    TERMINAL = "terminal_error"
    TIMEOUT = "timeout"
    PANIC = "panic"

    @property
    def is_error(self) -> bool:
        """Whether the turn failed."""
        return self not in {Ending.SUCCESS, Ending.REQUEUE_AFTER, Ending.STALE}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a turn, and what it means for the key."""

    ending: Ending
    requeue_after: float | None = None
    """In how many seconds the next turn comes at the latest; positive."""
    priority: int | None = None
    """The priority of the next turn; None for that of this one."""
    not_before: float = 0.0
    """In how many seconds a retry comes at the earliest, where the server asked for that; a deadline comes first."""
    error: BaseException | None = None


def outcome_of(result: Result) -> Outcome:
    """Return what it means that the reconciler returned `result`."""
    if result.requeue_after is not None and result.requeue_after > 0:
        return Outcome(Ending.REQUEUE_AFTER, result.requeue_after, result.priority)
    return Outcome(Ending.SUCCESS)


def failure_of(error: BaseException, *, timed_out: bool) -> Outcome:
    """Return what it means that the reconciler raised `error`, possibly because its time was up."""
    errors = tuple(_leaves(error))
    limits = [each.requeue_after for each in errors if isinstance(each, RetryableError)]
    # A time that has passed already would make a hot loop of the retries.
    requeue_after = min((limit for limit in limits if limit is not None and limit > 0), default=None)
    return Outcome(_ending_of(errors, timed_out), requeue_after, not_before=wish_of(error), error=error)


def wish_of(error: BaseException) -> float:
    """For how many seconds the server asks to be left alone, in the error or in what caused it."""
    wish, waiting, seen = 0.0, [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ApiError):
            wish = max(wish, each.retry_after or 0.0)
        waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [each.__cause__] if each.__cause__ is not None else ()
    return min(wish, NOT_BEFORE_MAX_SECONDS)


def _ending_of(errors: tuple[BaseException, ...], timed_out: bool) -> Ending:
    if timed_out:
        return Ending.TIMEOUT
    if not all(isinstance(each, _EXPECTED) for each in errors):
        return Ending.PANIC
    if all(isinstance(each, TerminalError) for each in errors):
        return Ending.TERMINAL
    if all(isinstance(each, Stale) for each in errors):
        return Ending.STALE
    return Ending.ERROR


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
