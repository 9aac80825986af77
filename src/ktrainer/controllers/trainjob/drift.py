"""Whether an object that is there has all that we want of it. Pure.

Servers and others add fields, to which we have nothing to say; what is missing or different is drift.
"""

from __future__ import annotations

from typing import Any, Final

_KEYS: Final = ("name", "uid")
"""What items of lists are told apart by, where all of them have it."""


def covers(present: Any, wanted: Any) -> bool:
    """Whether `present` holds all of `wanted`; an empty map or list is as good as none."""
    if isinstance(wanted, dict):
        if not wanted:
            return present is None or isinstance(present, dict)
        return isinstance(present, dict) and all(covers(present.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return _covers_list([] if present is None else present, wanted)
    return type(present) is type(wanted) and bool(present == wanted)


def _covers_list(present: Any, wanted: list[Any]) -> bool:
    if not isinstance(present, list):
        return False
    for key in _KEYS if wanted else ():
        if all(isinstance(item, dict) and key in item for item in (*wanted, *present)):
            known = {item[key]: item for item in present}
            return all(item[key] in known and covers(known[item[key]], item) for item in wanted)
    return len(present) == len(wanted) and all(map(covers, present, wanted))
