from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.client.events.body import ObjectReference, Occurrence
from ktrainer.client.events.correlator import (
    BURST,
    REFILL_SECONDS,
    REFRESH_SECONDS,
    REMEMBERED,
    SERIES_SECONDS,
    Correlator,
    Series,
)
from support.cases import cases
from support.virtualtime import ManualClock


def occurrence(note: str = "note", name: str = "job", reason: str = "Reason") -> Occurrence:
    return Occurrence(ObjectReference("batch/v1", "Job", "ns", name, "uid"), "Normal", reason, "Act", note)


def begun(correlator: Correlator, what: Occurrence) -> Series:
    series = correlator.begin(what, "name")
    assert series is not None
    return series


def test_the_same_thing_should_be_one_series() -> None:
    correlator = Correlator(ManualClock())
    assert correlator.find(occurrence()) is None
    series = begun(correlator, occurrence())
    assert correlator.find(occurrence()) is series
    assert correlator.find(occurrence(note="other")) is None
    assert correlator.find(occurrence(reason="Other")) is None


def test_the_second_time_should_be_told_and_further_times_counted() -> None:
    correlator = Correlator(ManualClock())
    series = begun(correlator, occurrence())
    assert [correlator.repeat(series) for _ in range(100)] == [True] + [False] * 99
    assert (series.count, series.told_count) == (101, 2)
    assert correlator.due() == []


def test_a_series_that_goes_on_should_be_brought_up_to_date_every_half_hour() -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    series = begun(correlator, occurrence())
    told = []
    for minute in range(1, 121):
        clock.advance(60)
        if correlator.repeat(series) or correlator.due():
            told.append(minute)
    assert told == [1, 31, 61, 91]
    assert series.told_count == 92
    assert REFRESH_SECONDS == 1800


def test_a_series_should_be_over_after_six_minutes_with_a_last_word() -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    series = begun(correlator, occurrence())
    for _ in range(5):
        correlator.repeat(series)
    clock.advance(SERIES_SECONDS - 1)
    assert correlator.find(occurrence()) is series
    assert correlator.due() == []
    clock.advance(1)
    assert correlator.find(occurrence()) is None
    assert correlator.due() == [series]
    assert series.told_count == 6
    assert correlator.due() == []


def test_a_single_event_should_be_forgotten_without_a_word() -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    begun(correlator, occurrence())
    clock.advance(SERIES_SECONDS)
    assert correlator.due() == []
    assert not vars(correlator)["_series"]


def test_an_object_should_get_no_more_than_its_share() -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    begun_names = [number for number in range(100) if correlator.begin(occurrence(str(number)), "x")]
    assert begun_names == list(range(BURST))
    assert correlator.begin(occurrence(name="other"), "x")
    clock.advance(REFILL_SECONDS - 1)
    assert not correlator.begin(occurrence("late"), "x")
    clock.advance(1)
    assert correlator.begin(occurrence("later"), "x")
    assert not correlator.begin(occurrence("latest"), "x")


def test_a_count_for_which_there_is_no_room_should_be_told_later() -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    series = [begun(correlator, occurrence(str(number))) for number in range(BURST)]
    assert not correlator.repeat(series[0])
    clock.advance(REFILL_SECONDS)
    assert correlator.repeat(series[0])
    assert series[0].told_count == 3


def test_memory_should_be_limited() -> None:
    correlator = Correlator(ManualClock())
    for number in range(REMEMBERED + 10):
        begun(correlator, occurrence(name=str(number)))
    assert correlator.find(occurrence(name="9")) is None
    assert correlator.find(occurrence(name="10")) is not None
    assert len(vars(correlator)["_allowances"]) == REMEMBERED


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["record", "due"]),
        st.sampled_from([0.0, 0.1, 1.0, 60.0, 300.0, 400.0, 3600.0]),
        st.integers(0, 1),
        st.integers(0, 40),
    ),
    max_size=200,
)


@settings(max_examples=cases(10_000))
@given(STEPS)
def test_no_object_should_ever_get_more_than_its_share(steps: list[tuple[str, float, int, int]]) -> None:
    clock = ManualClock()
    correlator = Correlator(clock)
    sent: Counter[str] = Counter()
    recorded: Counter[Occurrence] = Counter()
    for kind, seconds, name, note in steps:
        clock.advance(seconds)
        if kind == "due":
            sent.update(series.occurrence.regarding.name for series in correlator.due())
        else:
            what = occurrence(str(note), str(name))
            recorded[what] += 1
            series = correlator.find(what)
            if series is not None:
                sent[str(name)] += correlator.repeat(series)
                assert series.count <= recorded[what]
            else:
                sent[str(name)] += correlator.begin(what, "x") is not None
        for count in sent.values():
            assert count <= BURST + clock.monotonic() / REFILL_SECONDS
