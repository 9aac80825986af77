"""The logs of a cluster's components: the end of one, or all of them merged by time."""

from __future__ import annotations

import heapq
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clusters.folder import Folder

_KLOG = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)")


def last_lines(folder: Folder, component: str, count: int) -> list[str]:
    """Return the last lines of a component's log."""
    log = folder.log(component)
    return log.read_text(errors="replace").splitlines()[-count:] if log.exists() else []


def merged(folder: Folder) -> Iterator[str]:
    """Yield the lines of all logs in the order of their times, each behind the name of its component."""
    logs = sorted(folder.path.glob("logs/*.log"))
    width = max((len(log.stem) for log in logs), default=0)
    # A log that is appended to while it is read ends where it ended at the start: no line comes twice.
    streams = [_timed(log.stem.ljust(width), log.read_text(errors="replace").splitlines()) for log in logs]
    for _, line in heapq.merge(*streams, key=lambda timed: timed[0]):
        yield line


def _timed(name: str, lines: Iterable[str]) -> Iterator[tuple[datetime, str]]:
    # A line without a time, of a stack for example, belongs to the line before it.
    time = datetime.min.replace(tzinfo=UTC)
    for line in lines:
        time = time_of(line) or time
        yield time, f"{name} | {line}"


def time_of(line: str) -> datetime | None:
    """Return the time that a log line of one of the components tells, None where it tells none."""
    if match := _KLOG.match(line):
        month, day, hour, minute, second, micro = map(int, match.groups())
        # This format has no year and is in the machine's time zone.
        now = datetime.now().astimezone()
        try:
            time = datetime(now.year, month, day, hour, minute, second, micro, tzinfo=now.tzinfo)
        except ValueError:
            return None
        return time if time <= now or month < 12 else time.replace(year=now.year - 1)
    if match := _ISO.search(line[:200]):
        return datetime.fromisoformat(match[0])
    return None
