"""Durations such as 15s, 1m30s or 100ms, as Kubernetes spells them in configuration files.

Parity: Go's time.ParseDuration and Duration.String. Departs: what is finer than a microsecond is cut off.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final, TypeAlias

from pydantic import PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    # Two letters that look the same: the micro sign and the Greek mu.
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART: Final = rf"(\d+\.?\d*|\.\d+)({'|'.join(_UNITS)})"
_FORM: Final = re.compile(rf"[+-]?(0|({_PART})+)", re.ASCII)
# The greatest number of nanoseconds that Go can hold.
_MAX: Final = 2**63 - 1


def parse_duration(text: str) -> timedelta:
    """Read a duration; raises ValueError for anything else."""
    if not _FORM.fullmatch(text):
        raise ValueError(f"not a duration: {text!r}")
    nanos = 0
    for number, unit in re.findall(_PART, text, re.ASCII):
        whole, _, fraction = number.partition(".")
        nanos += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
        if nanos > _MAX:
            raise ValueError(f"too long a duration: {text!r}")
    micros = timedelta(microseconds=nanos // 1000)
    return -micros if text.startswith("-") else micros


def format_duration(duration: timedelta) -> str:
    """Write a duration in hours, minutes and seconds; less than a second in the largest unit that fits."""
    sign, micros = ("-", -duration) if duration < timedelta(0) else ("", duration)
    total = micros // timedelta(microseconds=1)
    if total == 0:
        return "0s"
    if total < 1000:
        return f"{sign}{total}\u00b5s"
    if total < 10**6:
        return f"{sign}{_decimal(total, 1000)}ms"
    minutes, rest = divmod(total, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    lead = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{lead}{_decimal(rest, 10**6)}s"


def _decimal(number: int, unit: int) -> str:
    whole, fraction = divmod(number, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _validate(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    try:
        if isinstance(value, str):
            return parse_duration(value)
    except ValueError:
        pass
    raise PydanticCustomError("duration", "must be a duration such as 15s or 1m30s")


Duration: TypeAlias = Annotated[timedelta, PlainValidator(_validate), PlainSerializer(format_duration)]
"""The type of a duration field."""
