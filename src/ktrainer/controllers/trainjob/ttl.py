"""When a finished TrainJob is to be deleted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from datetime import datetime


def seconds_to_live(finished_at: str | None, ttl_seconds: int | None, now: datetime) -> float | None:
    """How long a finished TrainJob stays, not positive when its time is up; none where it stays for ever."""
    if finished_at is None or ttl_seconds is None:
        return None
    return parse_time(finished_at).timestamp() + ttl_seconds - now.timestamp()
