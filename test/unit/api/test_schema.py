from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from ktrainer.api.model import Model
from ktrainer.api.schema import IMMUTABLE, Instant, IntOrString, Keyed, Rule, Unique

EVEN = Rule("self % 2 == 0", "must be even", lambda value: value % 2 == 0)


class Pair(Model):
    rules = (Rule("self.low <= self.high", "low must not be above high", lambda pair: pair.low <= pair.high),)

    low: Annotated[int, EVEN]
    high: int


def test_a_rule_should_be_checked_on_a_field_and_on_an_object() -> None:
    assert Pair(low=2, high=3).low == 2
    with pytest.raises(ValidationError, match="must be even"):
        Pair(low=1, high=3)
    with pytest.raises(ValidationError, match="low must not be above high"):
        Pair(low=4, high=3)


def test_a_rule_on_transitions_should_not_look_at_one_object() -> None:
    assert TypeAdapter(Annotated[int, IMMUTABLE]).validate_python(5) == 5


@pytest.mark.parametrize("items", [[], [{"k": "a"}, {"k": "b"}], [{"k": "a"}, {}]])
def test_items_with_different_keys_should_be_accepted(items: list[dict[str, str]]) -> None:
    assert TypeAdapter(Annotated[list[dict[str, str]], Keyed("k")]).validate_python(items) == items


def test_items_with_one_key_should_be_refused_at_the_second() -> None:
    adapter = TypeAdapter(Annotated[list[dict[str, str]], Keyed("k")])
    with pytest.raises(ValidationError) as refusal:
        adapter.validate_python([{"k": "a"}, {"k": "b"}, {"k": "a"}])
    (error,) = refusal.value.errors()
    assert (error["type"], error["loc"], error["input"]) == ("duplicate", (2,), "a")


def test_equal_items_of_a_set_should_be_refused() -> None:
    adapter = TypeAdapter(Annotated[list[str], Unique()])
    assert adapter.validate_python(["a", "b"]) == ["a", "b"]
    with pytest.raises(ValidationError, match="duplicate"):
        adapter.validate_python(["a", "a"])


@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, -(2**31), "", "auto"])
def test_int_or_string_should_be_either(value: int | str) -> None:
    assert TypeAdapter(IntOrString).validate_python(value) == value


@pytest.mark.parametrize("value", [True, 1.0, None, [], {}, 2**31, -(2**31) - 1])
def test_int_or_string_should_be_nothing_else(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(IntOrString).validate_python(value)


def test_an_instant_should_stay_as_it_was_spelt() -> None:
    spelt = "2026-01-02T04:04:05.123456789+01:00"
    assert TypeAdapter(Instant).validate_python(spelt) == spelt
    for wrong in ("2026-01-02", "2026-13-02T04:04:05Z", "", 5):
        with pytest.raises(ValidationError):
            TypeAdapter(Instant).validate_python(wrong)
