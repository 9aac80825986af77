"""What the end of a watch means: pure decisions.

A watch that ends for any reason of transport goes on where it was; only what the server no longer knows, what makes no
sense, and a watch that ended before it began lead to listing everything again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from ktrainer.client.errors import ConnectFailed, LineTooLong, StreamExpired, StreamIdle, TransportError
from ktrainer.kube.errors import ApiError, Expired, Timeout, TooManyRequests
from ktrainer.machinery.cache.fifo import Overflow
from ktrainer.machinery.cache.record import RelistReason
from ktrainer.machinery.cache.reflector.events import Undecodable
from ktrainer.machinery.cache.vitals import refusal_of

SHORT_SECONDS = 1.0
"""A watch that ends sooner and brings nothing is a sign that something is wrong."""

WatchError: TypeAlias = ApiError | TransportError | Undecodable | Overflow


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """How a watch went."""

    error: WatchError | None
    """What ended it; None when the server did."""
    is_open: bool
    """Whether it ever began."""
    seconds: float
    lines: int
    """Events of any kind that it brought."""
    bookmarks: int
    has_news: bool
    """Whether it brought a state or a change; bookmarks alone are no news."""

    @property
    def is_short(self) -> bool:
        """Whether it ended at once and brought nothing."""
        return self.is_open and self.seconds < SHORT_SECONDS and not self.has_news

    @property
    def is_silent(self) -> bool:
        """Whether it brought nothing although it lasted as long as it could."""
        return self.lines == 0 and (self.error is None or isinstance(self.error, (StreamIdle, StreamExpired)))


class Step(Enum):
    """What to do next, other than listing again."""

    REWATCH = auto()
    """Watch at once from where we are."""
    BACK_OFF = auto()
    """The same after a while."""


class FillStep(Enum):
    """What to do next when a stream ended before the initial state was complete."""

    LIST = auto()
    """List page by page."""
    ANY_VERSION = auto()
    """Ask for the stream again, and for the newest state instead of one that is not older than ours."""
    BACK_OFF = auto()
    """Ask for the same stream after a while."""
    GIVE_UP = auto()
    """Listing will fare no better."""


def decide_next(end: WatchEnd) -> Step | RelistReason:
    """Decide how to go on when a watch has ended."""
    match end.error:
        case Expired():
            return RelistReason.EXPIRED
        case error if is_unknown_version(error):
            return RelistReason.ROLLED_BACK
        case TooManyRequests():
            return Step.BACK_OFF
        case ApiError():
            return RelistReason.FAILED
        case Undecodable() | LineTooLong():
            return RelistReason.UNDECODABLE
        case Overflow():
            return RelistReason.OVERFLOW
        case TransportError() if not end.is_open:
            return Step.BACK_OFF
    return RelistReason.SHORT_WATCH if end.is_short else Step.REWATCH


def decide_fill(end: WatchEnd, version: str) -> FillStep:
    """Decide how to get at the state when a stream that asked for it, not older than a version, ended too early."""
    error = end.error
    if isinstance(error, Expired) or is_unknown_version(error):
        return FillStep.ANY_VERSION if version else FillStep.LIST
    if isinstance(error, (TooManyRequests, ConnectFailed)):
        return FillStep.BACK_OFF
    if error is not None and refusal_of(error) is not None:
        return FillStep.GIVE_UP
    return FillStep.LIST


def is_unknown_version(error: Exception | None) -> bool:
    """Whether the server has not got as far as the version that we know."""
    return isinstance(error, Timeout) and error.resource_version_too_large
