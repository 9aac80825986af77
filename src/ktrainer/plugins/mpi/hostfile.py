"""How large the list of hosts gets, without making it: a number is quickly written, and as many lines are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ktrainer.framework.podset import PodSet

MAX_BYTES: Final = 2**20
"""How much data an API server lets a ConfigMap have."""


def size_of(line: str, pods: PodSet, count: int) -> int:
    """The bytes of the lines for so many pods of each replica; `{host}` in a line stands for the name of a host."""
    replicas = pods.replicas
    fixed = len(line.replace("{host}", pods.first_endpoint).encode()) - len("00")
    return replicas * count * fixed + count * _digits_below(replicas) + replicas * _digits_below(count)


def problem_with(size: int) -> str:
    """What is wrong with a hostfile of so many bytes; nothing where it fits."""
    if size <= MAX_BYTES:
        return ""
    return f"the hostfile would have {size} bytes, and {MAX_BYTES} are all that a ConfigMap holds"


def _digits_below(number: int) -> int:
    """How many digits the numbers from zero up to this one, which is left out, have in all."""
    digits, power = number, 10
    while power < number:
        digits += number - power
        power *= 10
    return digits
