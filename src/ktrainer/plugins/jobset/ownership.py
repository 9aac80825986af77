"""The part of an object that a manager has applied, by the server's own records (`managedFields`). Pure.

Who applies less than before takes fields away, and who applies more gets fields that nobody else had: to change a few
fields and leave all others as they are, exactly the others must be applied again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.kube.jsonvalue import JsonObject


def applied_spec_of(obj: JsonObject, manager: str) -> JsonObject:
    """What a manager has applied of an object's spec; all of it where the server keeps no records."""
    records = obj["metadata"].get("managedFields") or ()
    spec: JsonObject = obj["spec"]
    if not records:
        return spec
    for record in records:
        if (record.get("manager"), record.get("operation")) == (manager, "Apply") and not record.get("subresource"):
            fields = (record.get("fieldsV1") or {}).get("f:spec")
            owned: JsonObject = _part(spec, fields) if fields else {}
            return owned
    return {}


def _part(value: Any, fields: JsonObject) -> Any:
    """The part of a value that has these fields; what has no fields of its own belongs to its owner as a whole."""
    inner = {key: under for key, under in fields.items() if key != "."}
    if not inner:
        return value
    if isinstance(value, list):
        return list(_items(value, inner))
    if isinstance(value, dict):
        named = ((key.removeprefix("f:"), under) for key, under in inner.items())
        return {name: _part(value[name], under) for name, under in named if name in value}
    return value


def _items(values: list[Any], fields: JsonObject) -> Iterator[Any]:
    """The items of a list, each known by some of its fields (`k:`) or by itself (`v:`)."""
    known = [(key[:2], orjson.loads(key[2:]), under) for key, under in fields.items()]
    for value in values:
        for kind, identity, under in known:
            if value == identity if kind == "v:" else identity.items() <= value.items():
                yield _part(value, under)
