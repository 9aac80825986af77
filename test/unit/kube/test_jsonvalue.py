from __future__ import annotations

import pytest
from hypothesis import given

from ktrainer.kube.jsonvalue import are_same, copy_of, is_deeper_than
from support.jsonvalues import VALUES


@given(VALUES)
def test_a_copy_should_be_the_same_and_share_nothing(value: object) -> None:
    copy = copy_of(value)
    assert are_same(copy, value)
    assert not isinstance(value, dict | list) or copy is not value
    if isinstance(value, dict):
        assert all(copy[key] is not item for key, item in value.items() if isinstance(item, dict | list))


@pytest.mark.parametrize(
    "value, other",
    [(True, 1), (False, 0), (1, 1.0), ([True], [1]), ({"a": [0]}, {"a": [False]}), (None, False), ("", None), ([], {})],
)
def test_values_of_different_types_should_differ(value: object, other: object) -> None:
    assert not are_same(value, other)


@pytest.mark.parametrize("value, other", [([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, {}), ("a", "b")])
def test_different_values_should_differ(value: object, other: object) -> None:
    assert not are_same(value, other)


@pytest.mark.parametrize(
    "value, levels",
    [
        pytest.param(1, 0, id="none"),
        pytest.param({}, 1, id="an empty object"),
        pytest.param({"a": [1, {"b": 2}], "c": 3}, 3, id="the deepest branch"),
    ],
)
def test_levels_should_be_counted(value: object, levels: int) -> None:
    assert not is_deeper_than(value, levels)
    assert levels == 0 or is_deeper_than(value, levels - 1)
