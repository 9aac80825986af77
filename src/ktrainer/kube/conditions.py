"""Conditions of a status, in the form that all kinds share (metav1.Condition).

The one rule worth code: `lastTransitionTime` moves only when the status flips. Lists are never changed, only replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ktrainer.kube.timestamp import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class Condition(msgspec.Struct, rename="camel", gc=False, frozen=True):
    """One condition; written in full, since the API requires even an empty message."""

    type: str
    status: str
    """`TRUE`, `FALSE` or `UNKNOWN` in a valid object."""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    """RFC 3339, whole seconds; none in a condition that was not yet set."""
    observed_generation: int = 0
    """The `metadata.generation` that this condition speaks of."""


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of this type, if there is one."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether the condition of this type is there and true."""
    condition = find(conditions, type_)
    return condition is not None and condition.status == TRUE


def set_condition(conditions: Sequence[Condition], new: Condition, now: datetime) -> list[Condition]:
    """Return the conditions with `new` in the place of its type, or at the end.

    The transition time of `new` itself is ignored: it stays what it was unless the status differs, and is `now` then.
    The result equals the input when nothing changed.
    """
    old = find(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else None
    settled = msgspec.structs.replace(new, last_transition_time=since or format_time(now))
    if old is None:
        return [*conditions, settled]
    return [settled if condition is old else condition for condition in conditions]
