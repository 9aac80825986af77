from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from ktrainer.kube.jsonvalue import are_same, copy_of
from ktrainer.kube.patches import PatchError, apply, diff, merge_apply, merge_diff
from support.cases import cases
from support.jsonvalues import OBJECTS, VALUES


@settings(max_examples=cases(2_000))
@given(VALUES, VALUES)
def test_applying_a_difference_should_give_the_new_document(old: Any, new: Any) -> None:
    before, after = copy_of(old), copy_of(new)
    operations = diff(old, new)
    result = apply(operations, old)
    assert are_same(result, new)
    assert are_same(old, before)
    assert are_same(new, after)
    assert bool(operations) != are_same(old, new)


@pytest.mark.parametrize(
    "old, new, operations",
    [
        pytest.param({}, {"a": {"b": 1}}, [{"op": "add", "path": "/a", "value": {"b": 1}}], id="add a field"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, [{"op": "remove", "path": "/a"}], id="remove a field"),
        pytest.param(
            {"a": {"b": 1, "c": 2}},
            {"a": {"b": 3, "c": 2}},
            [{"op": "replace", "path": "/a/b", "value": 3}],
            id="inside",
        ),
        pytest.param({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}], id="1 is not true"),
        pytest.param({"a": None}, {}, [{"op": "remove", "path": "/a"}], id="null is not absent"),
        pytest.param(
            {"a/b": {"c~d": 1}},
            {"a/b": {"c~d": 2}},
            [{"op": "replace", "path": "/a~1b/c~0d", "value": 2}],
            id="escaped",
        ),
        pytest.param([1, 2, 3], [1, 9, 2, 3], [{"op": "add", "path": "/1", "value": 9}], id="insert into a list"),
        pytest.param([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}], id="remove from a list"),
        pytest.param(
            [1, 2], [1, 2, 3, 4], [{"op": "add", "path": f"/{i}", "value": i + 1} for i in (2, 3)], id="append"
        ),
        pytest.param([1, 2, 3], [], [{"op": "remove", "path": f"/{i}"} for i in (2, 1, 0)], id="empty a list"),
        pytest.param(
            [{"n": 1, "x": 1}, {"n": 2}],
            [{"n": 1, "x": 2}, {"n": 2}],
            [{"op": "replace", "path": "/0/x", "value": 2}],
            id="inside an item",
        ),
        pytest.param({"a": 1}, [1], [{"op": "replace", "path": "", "value": [1]}], id="the whole document"),
    ],
)
def test_a_difference_should_be_small(old: Any, new: Any, operations: list[Any]) -> None:
    assert diff(old, new) == operations


@pytest.mark.parametrize(
    "operation, expected",
    [
        ({"op": "add", "path": "/l/-", "value": 4}, {"l": [1, 2, 4], "m": {"a": 1}}),
        ({"op": "add", "path": "/l/2", "value": 4}, {"l": [1, 2, 4], "m": {"a": 1}}),
        ({"op": "add", "path": "/m", "value": 4}, {"l": [1, 2], "m": 4}),
        ({"op": "add", "path": "", "value": 4}, 4),
        ({"op": "replace", "path": "", "value": 4}, 4),
        ({"op": "move", "from": "/l/0", "path": "/m/b"}, {"l": [2], "m": {"a": 1, "b": 1}}),
        ({"op": "move", "from": "/m", "path": "/m"}, {"l": [1, 2], "m": {"a": 1}}),
        ({"op": "copy", "from": "/m", "path": "/l/0"}, {"l": [{"a": 1}, 1, 2], "m": {"a": 1}}),
        ({"op": "test", "path": "/m/a", "value": 1}, {"l": [1, 2], "m": {"a": 1}}),
    ],
)
def test_every_operation_should_be_carried_out(operation: dict[str, Any], expected: Any) -> None:
    assert apply([operation], {"l": [1, 2], "m": {"a": 1}}) == expected


def test_a_patched_document_should_share_nothing_with_the_patch() -> None:
    for operation in ("add", "replace"):
        value: list[int] = []
        apply([{"op": operation, "path": "/a", "value": value}], {"a": 0})["a"].append(1)
        assert value == []


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/l/3", "value": 0},
        {"op": "add", "path": "/l/x", "value": 0},
        {"op": "add", "path": "/l/01", "value": 0},
        {"op": "add", "path": "/l/-1", "value": 0},
        {"op": "add", "path": "/x/y", "value": 0},
        {"op": "add", "path": "/m/a/b", "value": 0},
        {"op": "add", "path": "/m"},
        {"op": "add", "path": "m", "value": 0},
        {"op": "add", "path": 5, "value": 0},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/l/2"},
        {"op": "remove", "path": "/l/-"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/x", "value": 0},
        {"op": "replace", "path": "/l/2", "value": 0},
        {"op": "replace", "path": "/m/a/b", "value": 0},
        {"op": "move", "from": "/m", "path": "/m/b"},
        {"op": "move", "from": "/x", "path": "/y"},
        {"op": "test", "path": "/m/a", "value": True},
        {"op": "test", "path": "/x", "value": None},
        {"op": "frobnicate", "path": ""},
        {"path": "/a"},
        {},
        "add",
    ],
)
def test_a_patch_that_does_not_fit_should_be_refused(operation: Any) -> None:
    document = {"l": [1, 2], "m": {"a": 1}}
    with pytest.raises(PatchError):
        apply([{"op": "add", "path": "/new", "value": 1}, operation], document)
    assert document == {"l": [1, 2], "m": {"a": 1}}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


@settings(max_examples=cases(2_000))
@given(OBJECTS, OBJECTS)
def test_applying_a_merge_difference_should_give_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    old, new = without_nulls(old), without_nulls(new)
    before, after = copy_of(old), copy_of(new)
    patch = merge_diff(old, new)
    assert are_same(merge_apply(patch, old), new)
    assert are_same([old, new], [before, after])
    assert bool(patch) != are_same(old, new)


@pytest.mark.parametrize(
    "document, patch, expected",
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c", "d": 1}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d", "d": 1}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a"], {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": 1}, "bar", "bar"),
        ({"a": 1}, None, None),
    ],
)
def test_a_merge_patch_should_be_carried_out(document: Any, patch: Any, expected: Any) -> None:
    assert merge_apply(patch, document) == expected
