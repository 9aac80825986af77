"""What an informer counts, in plain numbers: counting is on the path of every event.

The labels of its metrics are here too, each a closed set.
"""

from __future__ import annotations

from enum import StrEnum

EVENT_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")


class RelistReason(StrEnum):
    """Why everything has to be listed again."""

    EXPIRED = "expired"
    """The server no longer has the changes since the version that we know."""
    SHORT_WATCH = "short_watch"
    """A watch ended at once and brought nothing."""
    UNDECODABLE = "undecodable"
    OVERFLOW = "overflow"
    """More changes came than could be handled."""
    ROLLED_BACK = "rolled_back"
    """The server has never heard of the version that we know: it was restored from an older state."""
    FAILED = "failed"
    """The server could not list or watch."""


class SkipReason(StrEnum):
    """Why an object is passed over."""

    WRONG_KIND = "wrong_kind"
    UNDECODABLE = "undecodable"
    TRANSFORM = "transform"
    """The view's transform raised."""


class Refusal(StrEnum):
    """Why the server does not let us list and watch, for as long as nobody changes something."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    """It does not know the resource."""


class Tally:
    """A count with a sum."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.count += 1
        self.total += value


class InformerRecord:
    """What one informer counts; written by its parts, read at a scrape."""

    __slots__ = (
        "events",
        "handler_errors",
        "idle_timeouts",
        "is_unreachable",
        "list_items",
        "list_seconds",
        "refusal",
        "relists",
        "short_watches",
        "skips",
        "watch_seconds",
    )

    def __init__(self) -> None:
        self.list_seconds = Tally()
        """How long lists took that succeeded, all pages together, streamed ones included."""
        self.list_items = Tally()
        """How many objects they brought."""
        self.watch_seconds = Tally()
        """How long watches lasted."""
        self.short_watches = 0
        self.idle_timeouts = 0
        """Watches that were given up because nothing came."""
        self.events = dict.fromkeys(EVENT_TYPES, 0)
        self.relists = dict.fromkeys(RelistReason, 0)
        self.skips = dict.fromkeys(SkipReason, 0)
        self.handler_errors = 0
        self.refusal: Refusal | None = None
        self.is_unreachable = False
        """Whether the last thing that was tried had no answer."""
