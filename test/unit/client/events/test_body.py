from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.client.events.body import (
    NAME_CHARACTERS,
    NOTE_BYTES,
    ObjectReference,
    Occurrence,
    Reporter,
    build_event,
    build_name,
    build_series,
    cut_note,
)

JOB = ObjectReference("batch/v1", "Job", "ns", "job", "1-2-3")
NODE = ObjectReference("v1", "Node", "", "node", "")
REPORTER = Reporter("trainer.kubeflow.org/manager", "manager-1")
AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def test_an_event_should_have_what_a_server_requires() -> None:
    event = build_event(Occurrence(JOB, "Warning", "Failed", "Reconcile", "100% of %s"), REPORTER, "job.1", AT)
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "job.1", "namespace": "ns"},
        "eventTime": "2026-01-02T03:04:05.000678Z",
        "reportingController": "trainer.kubeflow.org/manager",
        "reportingInstance": "manager-1",
        "regarding": {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": "job", "uid": "1-2-3"},
        "type": "Warning",
        "reason": "Failed",
        "action": "Reconcile",
        "note": "100% of %s",
    }
    assert build_series(7, AT) == {"count": 7, "lastObservedTime": "2026-01-02T03:04:05.000678Z"}


def test_an_event_about_an_object_of_the_cluster_should_be_in_the_default_namespace() -> None:
    event = build_event(Occurrence(NODE, "Normal", "Seen", "", ""), REPORTER, "node.1", AT)
    assert event["metadata"] == {"name": "node.1", "namespace": "default"}
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "node"}
    assert event["action"] == "Seen"


def test_words_should_be_cut_to_their_limit() -> None:
    occurrence = Occurrence(JOB, "Normal", "R" * 200, "A" * 200, "")
    event = build_event(occurrence, Reporter("c", "i" * 200), "job.1", AT)
    assert [len(event[name]) for name in ("reason", "action", "reportingInstance")] == [128, 128, 128]


@given(st.text(alphabet=st.sampled_from("aé€😀"), max_size=1200))
def test_a_note_should_be_cut_between_characters(note: str) -> None:
    cut = cut_note(note)
    if len(note.encode()) <= NOTE_BYTES:
        assert cut == note
    else:
        assert NOTE_BYTES - 4 < len(cut.encode()) <= NOTE_BYTES
        assert cut.endswith("...")
        assert note.startswith(cut.removesuffix("..."))


def test_a_note_may_hold_what_is_no_text() -> None:
    assert cut_note("a\ud800b") == "a?b"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("job", "job.ff"),
        ("a.b-c", "a.b-c.ff"),
        ("system:node", "event.ff"),
        ("UPPER", "event.ff"),
        ("", "event.ff"),
        ("a" * 253, "a" * 250 + ".ff"),
        ("a" * 249 + "-b", "a" * 249 + ".ff"),
    ],
)
def test_the_name_of_an_event_should_be_valid(name: str, expected: str) -> None:
    result = build_name(ObjectReference("v1", "X", "", name, ""), 255)
    assert result == expected
    assert len(result) <= NAME_CHARACTERS
