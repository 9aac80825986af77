from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.kube.timestamp import format_micro_time, format_time, is_time, parse_time

INSTANTS = st.datetimes(timezones=st.just(UTC))


@given(INSTANTS)
def test_micro_times_should_survive_their_spelling(at: datetime) -> None:
    assert parse_time(format_micro_time(at)) == at


@given(INSTANTS)
def test_times_should_lose_only_their_fraction(at: datetime) -> None:
    assert parse_time(format_time(at)) == at.replace(microsecond=0)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.000006Z", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5Z", datetime(2026, 1, 2, 3, 4, 5, 500000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_both_spellings_should_be_read(text: str, expected: datetime) -> None:
    assert parse_time(text) == expected
    assert parse_time(text).tzinfo is UTC
    assert is_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-01-02t03:04:05z",
        "20260102T030405Z",
        "2026-W01-2T03:04:05Z",
        "2026-01-02T03:04:05,5Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:60Z",
        "0001-01-01T00:00:00+02:00",
        "9999-12-31T23:59:59-02:00",
        "2026-01-02T03:04:05Z\n",
    ],
)
def test_anything_else_should_be_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an RFC 3339 time"):
        parse_time(text)
    assert not is_time(text)


def test_instants_should_be_written_in_utc() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=timezone(timedelta(hours=-5)))
    assert format_time(at) == "2026-01-02T08:04:05Z"
    assert format_micro_time(at) == "2026-01-02T08:04:05.999999Z"
    assert format_micro_time(at.replace(microsecond=0)) == "2026-01-02T08:04:05.000000Z"
    assert format_time(datetime(7, 1, 2, tzinfo=UTC)) == "0007-01-02T00:00:00Z"


def test_a_naive_datetime_should_be_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        format_time(datetime(2026, 1, 2))
