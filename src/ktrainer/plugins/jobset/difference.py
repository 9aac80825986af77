"""What of a JobSet's spec is not as it is wanted. Pure.

Unlike a look for drift, which asks for what is missing, this also finds what ought to be gone. Hence it must know what
the server adds by itself; where somebody else adds more, that is taken for a difference.
"""

from __future__ import annotations

from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from ktrainer.kube.jsonvalue import are_same

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN: Final = 5
"""How many differences are told."""

# Parity: the CRD and the webhook of JobSet 0.12.
_DEFAULTS: Final = {
    "completionMode": "Indexed",
    "enableDNSHostnames": True,
    "groupName": "default",
    "operator": "All",
    "protocol": "TCP",
    "publishNotReadyAddresses": True,
    "replicas": 1,
    "restartPolicy": "OnFailure",
    "restartStrategy": "Recreate",
    "startupPolicyOrder": "AnyOrder",
    "whenDeleted": "Delete",
}
"""What the server puts into fields that are left out. All else that it adds is empty."""


def differences(present: Any, wanted: Any, path: str = "spec") -> Iterator[str]:
    """The paths of what differs; what is empty is as good as absent, and what has its default, too."""
    if isinstance(present, dict) or isinstance(wanted, dict):
        before, after = present or {}, wanted or {}
        for key in {**before, **after}:
            default = _DEFAULTS.get(key)
            yield from _below(before.get(key, default), after.get(key, default), f"{path}.{key}")
    elif isinstance(present, list) or isinstance(wanted, list):
        for item, before, after in _pairs(present or [], wanted or []):
            yield from _below(before, after, f"{path}[{item}]")
    elif (present or wanted) and not are_same(present, wanted):
        yield path


def _below(present: Any, wanted: Any, path: str) -> Iterator[str]:
    """The same for what is in something else. Of what one side lacks altogether, nobody wants to know the parts."""
    found = differences(present, wanted, path)
    if present is not None and wanted is not None:
        yield from found
    elif any(found):
        yield path


def _pairs(present: list[Any], wanted: list[Any]) -> Iterator[tuple[object, Any, Any]]:
    """The items that belong together: by name where all have one, by position elsewhere."""
    if all(isinstance(item, dict) and "name" in item for item in (*present, *wanted)):
        old, new = ({item["name"]: item for item in items} for items in (present, wanted))
        yield from ((name, old.get(name), new.get(name)) for name in {**old, **new})
    else:
        for position, (before, after) in enumerate(zip_longest(present, wanted)):
            yield position, before, after


def told(paths: Iterator[str]) -> str:
    """The first few of them in words; nothing where there are none."""
    shown = list(islice(paths, SHOWN))
    return ", ".join((*shown, "and more")) if next(paths, None) else ", ".join(shown)
