import json
from pathlib import Path

import pytest

from clusters.audit import describe, events_of
from clusters.kubeconfig import IDENTITIES


def event(user: str, verb: str = "get") -> dict[str, object]:
    return {
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "user": {"username": user},
        "verb": verb,
        "requestURI": "/api/v1/pods",
        "responseStatus": {"code": 403},
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.log"
    events = [event("alice"), event(IDENTITIES["trainer"][0], "list"), event("alice", "watch")]
    path.write_text("".join(json.dumps(each) + "\n" for each in events) + '{"half')
    return path


@pytest.mark.parametrize(
    "user, verbs", [(None, ["get", "list", "watch"]), ("alice", ["get", "watch"]), ("trainer", ["list"]), ("bob", [])]
)
def test_events_should_be_those_of_the_user(log: Path, user: str | None, verbs: list[str]) -> None:
    assert [each["verb"] for each in events_of(log, user)] == verbs


def test_a_log_that_is_not_there_yet_should_have_no_events(tmp_path: Path) -> None:
    assert list(events_of(tmp_path / "none")) == []


def test_an_event_should_be_one_line() -> None:
    assert describe(event("alice")) == "2026-01-01T00:00:00.000000Z alice get /api/v1/pods 403"
