from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ktrainer.kube.conditions import FALSE, TRUE, Condition, find, is_true, set_condition

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_new_condition_should_be_added_with_its_time() -> None:
    first = set_condition([], Condition("Ready", TRUE, "Up", observed_generation=1), EARLY)
    both = set_condition(first, Condition("Done", FALSE, "Busy"), LATE)
    assert [(c.type, c.last_transition_time) for c in both] == [
        ("Ready", "2026-01-01T00:00:00Z"),
        ("Done", "2026-01-02T00:00:00Z"),
    ]
    assert len(first) == 1


def test_the_time_should_move_only_when_the_status_flips() -> None:
    conditions = set_condition([], Condition("Ready", TRUE, "Up", observed_generation=1), EARLY)
    told = set_condition(conditions, Condition("Ready", TRUE, "Better", "still up", observed_generation=2), LATE)
    assert told == [Condition("Ready", TRUE, "Better", "still up", "2026-01-01T00:00:00Z", 2)]
    flipped = set_condition(told, Condition("Ready", FALSE, "Down", observed_generation=3), LATE)
    assert flipped == [Condition("Ready", FALSE, "Down", "", "2026-01-02T00:00:00Z", 3)]


def test_a_condition_should_keep_its_place_and_the_others() -> None:
    conditions = [Condition("A", TRUE), Condition("B", TRUE), Condition("C", TRUE)]
    changed = set_condition(conditions, Condition("B", FALSE), LATE)
    assert [c.type for c in changed] == ["A", "B", "C"]
    assert changed[0] is conditions[0]
    assert changed[2] is conditions[2]
    assert conditions[1].status == TRUE


def test_setting_the_same_again_should_change_nothing() -> None:
    conditions = set_condition([], Condition("Ready", TRUE, "Up"), EARLY)
    assert set_condition(conditions, Condition("Ready", TRUE, "Up"), LATE) == conditions


def test_a_condition_without_a_time_should_get_one() -> None:
    (condition,) = set_condition([Condition("Ready", TRUE)], Condition("Ready", TRUE), LATE)
    assert condition.last_transition_time == "2026-01-02T00:00:00Z"


def test_conditions_should_be_found_by_type() -> None:
    conditions = [Condition("A", TRUE), Condition("B", FALSE), Condition("C", "Unknown")]
    assert find(conditions, "B") is conditions[1]
    assert find(conditions, "X") is None
    assert [is_true(conditions, type_) for type_ in "ABCX"] == [True, False, False, False]


def test_a_condition_should_be_written_in_full() -> None:
    (condition,) = set_condition([], Condition("Ready", TRUE, "Up"), EARLY)
    assert msgspec.to_builtins(condition) == {
        "type": "Ready",
        "status": "True",
        "reason": "Up",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 0,
    }


def test_a_sparse_condition_of_another_kind_should_be_read() -> None:
    text = b'{"type": "Complete", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}'
    assert msgspec.json.decode(text, type=Condition) == Condition("Complete", TRUE)
