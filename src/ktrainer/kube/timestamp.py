"""The two spellings of an instant in Kubernetes: whole seconds (`Time`) and microseconds (`MicroTime`), both RFC 3339.

Instants are aware datetimes in UTC; a naive one is a bug of the caller.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

# datetime.fromisoformat takes more than RFC 3339, such as week dates, so the form is checked first.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def format_time(at: datetime) -> str:
    """Write an instant as `Time`, such as 2026-01-02T03:04:05Z; fractions of a second are cut off, not rounded."""
    return _utc(at).isoformat(timespec="seconds") + "Z"


def format_micro_time(at: datetime) -> str:
    """Write an instant as `MicroTime`, such as 2026-01-02T03:04:05.000006Z, always with six digits."""
    return _utc(at).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str) -> datetime:
    """Read either spelling; digits beyond microseconds are cut off. Raises ValueError for anything else."""
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not an RFC 3339 time: {text!r}: {error}") from error


def is_time(text: str | None) -> bool:
    """Whether a text is an instant in either spelling."""
    try:
        parse_time(text or "")
    except ValueError:
        return False
    return True


def _utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"an instant needs a time zone: {at!r}")
    return at.astimezone(UTC).replace(tzinfo=None)
