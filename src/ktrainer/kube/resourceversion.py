"""The order of resourceVersions of one resource.

They are positive decimal numbers without leading zeros, of any length, so they compare by length and then as text. What
is not of that form has no order, and a caller must then go on rather than wait for a version it cannot recognise.
"""

from __future__ import annotations

from enum import StrEnum


class Order(StrEnum):
    """How one resourceVersion relates to another."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"
    UNKNOWN = "unknown"
    """At least one of the two is malformed."""


def is_well_formed(version: str) -> bool:
    """Whether the version can be ordered. Neither the empty string nor "0", which ask for special reads, can."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def compare(version: str, other: str) -> Order:
    """Tell whether `version` is older than `other`, the same, or newer; never raises."""
    if not (is_well_formed(version) and is_well_formed(other)):
        return Order.UNKNOWN
    if version == other:
        return Order.SAME
    return Order.OLDER if (len(version), version) < (len(other), other) else Order.NEWER


def newest(version: str, other: str) -> str:
    """The newer of two versions; a malformed one loses, and of two malformed ones the first is returned."""
    if not is_well_formed(version):
        return other if is_well_formed(other) else version
    return other if compare(version, other) is Order.OLDER else version
