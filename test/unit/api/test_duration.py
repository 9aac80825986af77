from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.api.duration import format_duration, parse_duration

MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("15s", 15.0, "15s"),
        ("0", 0.0, "0s"),
        ("1m30s", 90.0, "1m30s"),
        ("1h", 3600.0, "1h0m0s"),
        ("1.5h", 5400.0, "1h30m0s"),
        (".5s", 0.5, "500ms"),
        ("1.s", 1.0, "1s"),
        ("100ms", 0.1, "100ms"),
        ("1500\u00b5s", 0.0015, "1.5ms"),
        ("7\u03bcs", 0.000007, "7\u00b5s"),
        ("7us", 0.000007, "7\u00b5s"),
        ("1999ns", 0.000001, "1\u00b5s"),
        ("1h1m1.25s", 3661.25, "1h1m1.25s"),
        ("-1m", -60.0, "-1m0s"),
        ("+1m", 60.0, "1m0s"),
        ("10s10s", 20.0, "20s"),
    ],
)
def test_a_duration_should_be_read_and_written_as_go_does(text: str, seconds: float, canonical: str) -> None:
    duration = parse_duration(text)
    assert duration == timedelta(seconds=seconds)
    assert format_duration(duration) == canonical


@pytest.mark.parametrize("text", ["", "15", "s", "1 s", "1d", "1s ", ".s", "1e3s", "--1s", "1s2", "٣s", "9999999h"])
def test_anything_else_should_be_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(days=-(10**4)), max_value=timedelta(days=10**4)))
def test_what_is_written_should_be_read_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
