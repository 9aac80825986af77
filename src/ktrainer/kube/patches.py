"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386): how one document becomes another.

For each, applying the difference of two documents to the first gives the second. Inputs are never changed, and a
document that comes out of a patch shares nothing with what went in.
"""

from __future__ import annotations

from typing import Any, cast

from ktrainer.kube.jsonvalue import JsonObject, are_same, copy_of


class PatchError(ValueError):
    """A JSON patch that is malformed, or does not fit the document."""


def diff(old: Any, new: Any) -> list[JsonObject]:
    """The JSON patch that makes `new` of `old`: empty when they are the same, and the same for the same input.

    Only add, remove and replace are used. The values inside are those of `new`, not copies.
    """
    operations: list[JsonObject] = []
    _diff(old, new, "", operations)
    return operations


def apply(operations: list[JsonObject], document: Any) -> Any:
    """Carry out a JSON patch with any of the six operations; raises PatchError and then changes nothing."""
    box = [copy_of(document)]
    for operation in operations:
        try:
            _apply(operation, box)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise PatchError(f"malformed operation: {operation!r}") from error
    return box[0]


def merge_diff(old: JsonObject, new: JsonObject) -> JsonObject:
    """The merge patch that makes `new` of `old`. A null inside `new` means absent, as everywhere in a merge patch."""
    patch: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := merge_diff(before, value):
                patch[key] = inner
        elif not are_same(before, value):
            patch[key] = copy_of(value)
    return patch


def merge_apply(patch: Any, document: Any) -> Any:
    """Carry out a merge patch: maps merge, null deletes, and all else, lists too, is replaced."""
    if not isinstance(patch, dict):
        return copy_of(patch)
    before = document if isinstance(document, dict) else {}
    result: JsonObject = {}
    for key, value in before.items():
        if key not in patch:
            result[key] = copy_of(value)
        elif patch[key] is not None:
            result[key] = merge_apply(patch[key], value)
    for key, value in patch.items():
        if key not in before and value is not None:
            result[key] = merge_apply(value, None)
    return result


def _diff(old: Any, new: Any, path: str, operations: list[JsonObject]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        operations += [{"op": "remove", "path": _join(path, key)} for key in old if key not in new]
        for key, value in new.items():
            if key in old:
                _diff(old[key], value, _join(path, key), operations)
            else:
                operations.append({"op": "add", "path": _join(path, key), "value": value})
    elif isinstance(old, list) and isinstance(new, list):
        _diff_lists(old, new, path, operations)
    elif not are_same(old, new):
        operations.append({"op": "replace", "path": path, "value": new})


def _diff_lists(old: list[Any], new: list[Any], path: str, operations: list[JsonObject]) -> None:
    """Leave the common head and tail alone; pair what is between, and add or remove the rest after the pairs."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and are_same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < shorter - head and are_same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    paired = shorter - tail
    for index in range(head, paired):
        _diff(old[index], new[index], f"{path}/{index}", operations)
    operations += [{"op": "remove", "path": f"{path}/{index}"} for index in reversed(range(paired, len(old) - tail))]
    operations += [
        {"op": "add", "path": f"{path}/{index}", "value": new[index]} for index in range(paired, len(new) - tail)
    ]


def _join(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _apply(operation: JsonObject, box: list[Any]) -> None:
    """Apply one operation to the document in the box, which makes the root as easy to replace as any other value."""
    path = _split(operation["path"])
    match operation["op"]:
        case "add":
            _add(box, path, copy_of(operation["value"]))
        case "remove":
            _remove(box, path)
        case "replace":
            value = copy_of(operation["value"])
            parent, key = _locate(box, path)
            _get(parent, key)
            parent[key] = value
        case "move":
            source = _split(operation["from"])
            if path[: len(source)] == source and path != source:
                raise PatchError(f"cannot move a value into itself: {operation!r}")
            _add(box, path, _remove(box, source))
        case "copy":
            _add(box, path, copy_of(_get(*_locate(box, _split(operation["from"])))))
        case "test":
            if not are_same(_get(*_locate(box, path)), operation["value"]):
                raise PatchError(f"the test failed: {operation!r}")
        case other:
            raise PatchError(f"no such operation: {other!r}")


def _split(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise PatchError(f"not a JSON pointer: {pointer!r}")
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def _locate(box: list[Any], path: list[str]) -> tuple[Any, Any]:
    """The container that holds the value at a path, and its key or index there."""
    parent: Any = box
    key: Any = 0
    for step in path:
        parent = _get(parent, key)
        key = _index(step) if isinstance(parent, list) else step
    return parent, key


def _index(step: str) -> int | str:
    if step == "-":
        return step
    if not (step.isascii() and step.isdigit()) or (step[0] == "0" and step != "0"):
        raise PatchError(f"not an index of a list: {step!r}")
    return int(step)


def _get(parent: Any, key: Any) -> Any:
    if isinstance(parent, dict | list):
        try:
            return parent[key]
        except (KeyError, IndexError, TypeError):
            pass
    raise PatchError(f"no such value: {key!r}")


def _add(box: list[Any], path: list[str], value: Any) -> None:
    parent, key = _locate(box, path)
    if parent is box or isinstance(parent, dict):
        parent[key] = value
    elif isinstance(parent, list):
        position = len(parent) if key == "-" else cast("int", key)
        if position > len(parent):
            raise PatchError(f"beyond the end of the list: {key!r}")
        parent.insert(position, value)
    else:
        raise PatchError(f"neither an object nor a list: {parent!r}")


def _remove(box: list[Any], path: list[str]) -> Any:
    parent, key = _locate(box, path)
    value = _get(parent, key)
    if parent is box:
        raise PatchError("the whole document cannot be removed")
    del parent[key]
    return value
