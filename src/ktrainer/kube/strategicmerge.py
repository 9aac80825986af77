"""Strategic merge patches: how Kubernetes lays a partial object over a whole one, driven by the OpenAPI facts.

Maps merge, null deletes, a list whose definition says so merges by its key (or as a set, if of scalars), and any other
list is replaced. The order of a merged list: the patch's items in the patch's order; an item that only the original has
stays before the first patched one that it stood before, or comes after them all.

Parity: k8s.io/apimachinery/pkg/util/strategicpatch, as an API server applies a patch.
Departs: fields without facts merge as in a JSON merge patch, where Go fails; directives and nulls of a patch never get
into the result, where Go leaves some and relies on typed decoding to lose them; with a deletion and $setElementOrder in
one list, the place of items that only the original has does not depend on the memory of deleted ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.kube.facts import ANYTHING, Facts, Shape, kubernetes_facts
from ktrainer.kube.fields import Path
from ktrainer.kube.jsonvalue import JsonObject, copy_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"
_PARALLEL: Final = (_ORDER, _DELETE)
"""Directives for the list of the same name, as in $setElementOrder/containers."""

_ABSENT: Final = object()
"""Stands for the value of a field that is not there."""

_Key = tuple[type, Any]
"""What an item of a list is known by; the type keeps 1 apart from true."""


class MergeError(ValueError):
    """The patch does not fit; the message begins with the path of the field."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path.text else reason)


def merge(original: JsonObject, patch: JsonObject, type_name: str, facts: Facts | None = None) -> JsonObject:
    """Lay a patch over an object of a type that the facts know, by default those of Kubernetes itself.

    The result shares nothing with the inputs. Raises MergeError, and KeyError for an unknown type.
    """
    facts = facts or kubernetes_facts()
    facts.type_of(type_name)
    return _Merge(facts).maps(original, patch, Shape(ref=type_name), Path())


class _Merge:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def maps(self, original: JsonObject, patch: JsonObject, shape: Shape, path: Path) -> JsonObject:
        if _PATCH in patch:
            cleaned = _cleaned(patch, path)
            return {} if cleaned is _ABSENT else cleaned
        retained = _retained(original, patch, path)
        named = dict.fromkeys(_field_of(key, path) for key in patch if key != _RETAIN)
        result = {key: value if key in named else copy_of(value) for key, value in retained.items()}
        for key in named:
            value = self._field(result.get(key, _ABSENT), patch, key, self._facts.child_of(shape, key), path.child(key))
            if value is _ABSENT:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def _field(self, before: Any, patch: JsonObject, key: str, shape: Shape, path: Path) -> Any:
        value, change = before, patch.get(key, _ABSENT)
        if change is _ABSENT:
            value = copy_of(value)
        elif isinstance(value, dict) and isinstance(change, dict) and "replace" not in shape.strategies:
            value = self.maps(value, change, shape, path)
        elif isinstance(value, list) and isinstance(change, list) and "merge" in shape.strategies:
            value = self._lists(value, change, shape, path)
        else:
            value = _cleaned(change, path)
        if isinstance(value, list) and f"{_ORDER}/{key}" in patch:
            order = _keys_of(patch[f"{_ORDER}/{key}"], shape.merge_key, path)
            _check_order(change, order, shape.merge_key, path)
            old_order = _keys_of(before, shape.merge_key, path) if isinstance(before, list) else []
            value = _ordered(_keyed(value, shape.merge_key, path), order, old_order)
        if isinstance(value, list) and f"{_DELETE}/{key}" in patch:
            gone = _keys_of(patch[f"{_DELETE}/{key}"], "", path)
            value = [item for item_key, item in _keyed(value, "", path) if item_key not in gone]
        return value

    def _lists(self, original: list[Any], patch: list[Any], shape: Shape, path: Path) -> list[Any]:
        if any(isinstance(item, dict) for item in (*original, *patch)):
            if not shape.merge_key:
                raise MergeError(path, "the items of this list have no key to merge by")
            return self._items(original, patch, shape, path)
        scalars, patched = dict(_keyed(original, "", path)), dict(_keyed(patch, "", path))
        kept = ((key, item) for key, item in scalars.items() if key not in patched)
        return _interleave(kept, patched.items(), scalars)

    def _items(self, original: list[Any], patch: list[Any], shape: Shape, path: Path) -> list[Any]:
        changes, deleted, replaces = _sorted_out(patch, shape.merge_key, path)
        if replaces:
            return list(_cleaned(patch, path))
        # The API allows no two items of the same key; where there are, the first is patched and the others follow it.
        groups: dict[_Key, list[JsonObject]] = {}
        for key, item in _keyed(original, shape.merge_key, path):
            if key not in deleted:
                groups.setdefault(key, []).append(item)
        patched: list[tuple[_Key, JsonObject]] = []
        for key, steps in changes.items():
            value, *others = groups.get(key, [{}])
            for place, change in steps:
                value = self.maps(value, change, shape.items or ANYTHING, place)
            patched += [(key, value), *((key, copy_of(item)) for item in others)]
        kept = ((key, copy_of(item)) for key, items in groups.items() if key not in changes for item in items)
        return _interleave(kept, patched, groups)


def _sorted_out(
    patch: list[Any], merge_key: str, path: Path
) -> tuple[dict[_Key, list[tuple[Path, JsonObject]]], set[_Key], bool]:
    """Tell a patch's items apart: what to merge by key, the keys to delete, and whether the original list goes."""
    changes: dict[_Key, list[tuple[Path, JsonObject]]] = {}
    deleted: set[_Key] = set()
    replaces = False
    for index, item in enumerate(patch):
        place = path.index(index)
        directive = item.get(_PATCH, _ABSENT) if isinstance(item, dict) else _ABSENT
        if directive is _ABSENT:
            changes.setdefault(_key_of(item, merge_key, place), []).append((place, item))
        elif directive == "delete":
            deleted.add(_key_of(item, merge_key, place))
        elif directive == "replace":
            replaces = True
        else:
            raise MergeError(place, f"unknown directive {_PATCH}: {directive!r}")
    return changes, deleted, replaces


def _interleave(
    kept: Iterable[tuple[_Key, Any]], patched: Iterable[tuple[_Key, Any]], order: Iterable[_Key]
) -> list[Any]:
    """Put each kept item before the first patched one that it stood before, without changing either order."""
    rank = {key: index for index, key in enumerate(order)}
    waiting = list(kept)[::-1]
    result = []
    for key, item in patched:
        limit = rank.get(key, -1)
        while waiting and rank[waiting[-1][0]] < limit:
            result.append(waiting.pop()[1])
        result.append(item)
    return result + [item for _, item in reversed(waiting)]


def _check_order(change: Any, order: list[_Key], merge_key: str, path: Path) -> None:
    items = [item for item in change if not _has_directive(item)] if isinstance(change, list) else []
    keys = _keys_of(items, merge_key, path)
    if keys != [key for key in order if key in set(keys)]:
        raise MergeError(path, f"the items of the patch are not in the order of its {_ORDER}")


def _ordered(items: list[tuple[_Key, Any]], order: list[_Key], old_order: list[_Key]) -> list[Any]:
    """Bring a merged list into the order that is asked for; what that does not name keeps its old place."""
    rank = {key: index for index, key in enumerate(order)}
    patched = sorted((pair for pair in items if pair[0] in rank), key=lambda pair: rank[pair[0]])
    return _interleave((pair for pair in items if pair[0] not in rank), patched, dict.fromkeys(old_order))


def _has_directive(item: Any) -> bool:
    return isinstance(item, dict) and _PATCH in item


def _keys_of(items: Any, merge_key: str, path: Path) -> list[_Key]:
    return [key for key, _ in _keyed(items, merge_key, path)]


def _keyed(items: Any, merge_key: str, path: Path) -> list[tuple[_Key, Any]]:
    if not isinstance(items, list):
        raise MergeError(path, "not a list")
    return [(_key_of(item, merge_key, path.index(index)), item) for index, item in enumerate(items)]


def _key_of(item: Any, merge_key: str, path: Path) -> _Key:
    if merge_key:
        if not isinstance(item, dict) or item.get(merge_key) is None:
            raise MergeError(path, f"an item of this list needs the field {merge_key}")
        path, item = path.child(merge_key), item[merge_key]
    if isinstance(item, dict | list):
        raise MergeError(path, "not a scalar")
    return type(item), item


def _retained(original: JsonObject, patch: JsonObject, path: Path) -> JsonObject:
    """What $retainKeys leaves of the original: all of it without that directive."""
    if _RETAIN not in patch:
        return original
    keys = {key for (_, key), _ in _keyed(patch[_RETAIN], "", path.child(_RETAIN))}
    for key, value in patch.items():
        if key != _RETAIN and value is not None and key.partition("/")[0] not in _PARALLEL and key not in keys:
            raise MergeError(path.child(key), f"set by the patch, but not among its {_RETAIN}")
    return {key: value for key, value in original.items() if key in keys}


def _field_of(key: str, path: Path) -> str:
    """The field that a key of a patch is about."""
    directive, _, field = key.partition("/")
    if directive not in _PARALLEL:
        return key
    if not field:
        raise MergeError(path.child(key), "the directive names no field")
    return field


def _cleaned(value: Any, path: Path) -> Any:
    """A copy of a patch's value that meets nothing to merge with, without nulls and directives."""
    if isinstance(value, list):
        return [item if item is None else _cleaned(item, path) for item in value if not _has_directive(item)]
    if not isinstance(value, dict):
        return _ABSENT if value is None else value
    directive = value.get(_PATCH, "replace")
    if directive == "delete":
        return _ABSENT
    if directive != "replace":
        raise MergeError(path, f"unknown directive {_PATCH}: {directive!r}")
    result = {}
    for key, item in value.items():
        if key not in {_PATCH, _RETAIN} and key.partition("/")[0] not in _PARALLEL:
            cleaned = _cleaned(item, path.child(key))
            if cleaned is not _ABSENT:
                result[key] = cleaned
    return result
