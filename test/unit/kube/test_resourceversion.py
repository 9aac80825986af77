from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.kube.resourceversion import Order, compare, is_well_formed, newest

NUMBERS = st.integers(min_value=1, max_value=10**30)
MALFORMED = ["", "0", "01", "-1", "+1", "1.0", " 1", "1_000", "abc", "１２", "²"]  # noqa: RUF001  (digits that are not ASCII)


@given(NUMBERS, NUMBERS)
def test_versions_should_be_ordered_as_numbers(left: int, right: int) -> None:
    expected = Order.SAME if left == right else Order.OLDER if left < right else Order.NEWER
    assert compare(str(left), str(right)) is expected
    assert newest(str(left), str(right)) == str(max(left, right))


@pytest.mark.parametrize("version", MALFORMED)
def test_a_malformed_version_should_be_of_unknown_order(version: str) -> None:
    assert not is_well_formed(version)
    assert compare(version, "5") is Order.UNKNOWN
    assert compare("5", version) is Order.UNKNOWN
    assert compare(version, version) is Order.UNKNOWN


@pytest.mark.parametrize("version", MALFORMED)
def test_a_malformed_version_should_never_displace_a_good_one(version: str) -> None:
    assert newest(version, "5") == "5"
    assert newest("5", version) == "5"
    assert newest(version, "x") == version
