import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ktrainer.client.errors import FenceClosed
from ktrainer.client.events.body import ObjectReference, Reporter
from ktrainer.client.events.correlator import SERIES_SECONDS
from ktrainer.client.events.recorder import (
    HOUSEKEEPING_SECONDS,
    MAX_TRIES,
    QUEUE_LENGTH,
    SENDERS,
    STOP_SECONDS,
    EventRecorder,
)
from support.clients import client_and_server
from support.scriptedserver import Action, ScriptedServer, answer, failure
from support.virtualtime import VirtualClock, settle

JOB = ObjectReference("batch/v1", "Job", "ns", "job", "1-2-3")
NODE = ObjectReference("v1", "Node", "", "node", "4-5-6")
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


@asynccontextmanager
async def recording(
    clock: VirtualClock, fence: Callable[[], None] | None = None
) -> AsyncIterator[tuple[EventRecorder, ScriptedServer]]:
    """A recorder that runs, and is stopped at the end, when all is sent that can be."""
    async with client_and_server(clock, fence=fence) as (client, server):
        recorder = EventRecorder(client, Reporter("c/d", "i"), clock=clock, random=Random(0))
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.run())
            yield recorder, server
            recorder.stop()


@pytest.fixture
async def pair(virtual_clock: VirtualClock) -> AsyncIterator[tuple[EventRecorder, ScriptedServer]]:
    async with recording(virtual_clock) as pair:
        pair[1].responder = lambda _: (answer(201),)
        yield pair


@pytest.fixture
def recorder(pair: tuple[EventRecorder, ScriptedServer]) -> EventRecorder:
    return pair[0]


@pytest.fixture
def server(pair: tuple[EventRecorder, ScriptedServer]) -> ScriptedServer:
    return pair[1]


def record(recorder: EventRecorder, note: str = "note", regarding: ObjectReference = JOB) -> None:
    recorder.record(regarding, "Warning", "Failed", "Reconcile", note)


def bodies_of(server: ScriptedServer) -> list[Any]:
    return [orjson.loads(seen.body) for seen in server.requests]


async def test_an_event_should_be_created(recorder: EventRecorder, server: ScriptedServer) -> None:
    record(recorder, "x" * 3000)
    assert not server.requests
    await settle()
    [seen] = server.requests
    assert (seen.method, seen.path) == ("POST", EVENTS)
    [event] = bodies_of(server)
    assert event["regarding"]["uid"] == "1-2-3"
    assert event["metadata"]["name"].startswith("job.")
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "Failed", "Reconcile")
    assert len(event["note"]) == 1024
    assert "series" not in event


async def test_an_object_of_the_cluster_should_have_its_events_in_the_default_namespace(
    recorder: EventRecorder, server: ScriptedServer
) -> None:
    record(recorder, regarding=NODE)
    await settle()
    assert server.requests[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"


async def test_names_should_be_unique_even_within_one_instant(recorder: EventRecorder, server: ScriptedServer) -> None:
    for number in range(20):
        record(recorder, str(number))
    await settle()
    assert len({event["metadata"]["name"] for event in bodies_of(server)}) == 20


async def test_repetitions_should_become_a_series(
    recorder: EventRecorder, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    record(recorder)
    await settle()
    for _ in range(5):
        await asyncio.sleep(1)
        record(recorder)
    await settle()
    assert [seen.method for seen in server.requests] == ["POST", "PATCH"]
    created, patched = bodies_of(server)
    assert server.requests[1].path == f"{EVENTS}/{created['metadata']['name']}"
    assert server.requests[1].headers["content-type"] == "application/merge-patch+json"
    assert patched == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    await asyncio.sleep(7 * 60)
    assert bodies_of(server)[-1] == {"series": {"count": 6, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}}
    assert len(server.requests) == 3


async def test_the_count_of_a_series_should_be_told_before_the_next_one_begins(
    recorder: EventRecorder, server: ScriptedServer
) -> None:
    await asyncio.sleep(HOUSEKEEPING_SECONDS / 2)
    for _ in range(4):
        record(recorder)
    await asyncio.sleep(SERIES_SECONDS + 1)
    record(recorder)
    await settle()
    first, second, last, new = bodies_of(server)
    assert (second["series"]["count"], last["series"]["count"]) == (2, 4)
    assert "series" not in new
    assert new["metadata"]["name"] != first["metadata"]["name"]
    assert server.requests[2].path.endswith(first["metadata"]["name"])


async def test_an_event_that_the_server_has_forgotten_should_be_created_anew(
    recorder: EventRecorder, server: ScriptedServer
) -> None:
    server.will(answer(201), failure(404, "NotFound"), answer(201))
    record(recorder)
    await settle()
    record(recorder)
    await settle()
    assert [seen.method for seen in server.requests] == ["POST", "PATCH", "POST"]
    first, _, second = bodies_of(server)
    assert second["metadata"] == first["metadata"]
    assert second["series"]["count"] == 2


async def test_a_server_that_cannot_be_reached_should_be_tried_twelve_times(
    virtual_clock: VirtualClock,
) -> None:
    with capture_logs() as logs:
        async with recording(virtual_clock) as (recorder, server):
            server.responder = lambda _: (Action.CLOSE,)
            record(recorder)
            await asyncio.sleep(1000)
            assert len(server.requests) == MAX_TRIES
    assert len({seen.body for seen in server.requests}) == 1
    assert [each["event"] for each in logs if each["log_level"] == "warning"] == [
        "dropping an event, the API server cannot be reached"
    ]


async def test_an_event_should_be_sent_when_the_server_is_back(
    recorder: EventRecorder, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will((Action.CLOSE,), (Action.CLOSE,), answer(201))
    record(recorder)
    await asyncio.sleep(26)
    assert len(server.requests) == 3


async def test_a_refused_event_should_be_dropped(recorder: EventRecorder, server: ScriptedServer) -> None:
    terminating = {
        "kind": "Status",
        "reason": "Forbidden",
        "message": "no",
        "details": {"causes": [{"reason": "NamespaceTerminating"}]},
    }
    server.will(
        failure(403, "Forbidden"), answer(403, terminating), failure(409, "AlreadyExists"), failure(422, "Invalid")
    )
    with capture_logs() as logs:
        for number in range(4):
            record(recorder, str(number))
            await settle()
        await asyncio.sleep(100)
    assert len(server.requests) == 4
    assert [each["event"] for each in logs] == ["the API server refuses an event"] * 2


async def test_an_event_that_the_fence_stops_should_be_dropped_and_the_next_be_sent(
    virtual_clock: VirtualClock,
) -> None:
    is_leading = False

    def fence() -> None:
        if not is_leading:
            raise FenceClosed("this process does not lead")

    async with recording(virtual_clock, fence) as (recorder, server):
        server.responder = lambda _: (answer(201),)
        for number in range(2 * SENDERS):
            record(recorder, str(number))
        await asyncio.sleep(100)
        assert not server.requests
        is_leading = True
        record(recorder, "after that")
        await settle()
        assert [event["note"] for event in bodies_of(server)] == ["after that"]


async def test_an_object_should_not_flood_the_server(recorder: EventRecorder, server: ScriptedServer) -> None:
    for number in range(100):
        record(recorder, str(number))
        await asyncio.sleep(6)
    assert len(server.requests) == 25 + 1


async def test_what_is_recorded_should_be_sent_before_the_end(virtual_clock: VirtualClock) -> None:
    async with recording(virtual_clock) as (recorder, server):
        server.responder = lambda _: (answer(201),)
        for number in range(20):
            record(recorder, str(number))
        recorder.stop()
        record(recorder, "late")
    assert len(server.requests) == 20


class SlowWriter:
    """Takes a second for each event."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.written = 0

    async def create(self, *_: object) -> bytes:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(1)
        self.running -= 1
        self.written += 1
        return b""

    patch = create


async def test_nobody_should_ever_wait_and_what_is_too_much_should_be_dropped(virtual_clock: VirtualClock) -> None:
    writer = SlowWriter()
    recorder = EventRecorder(writer, Reporter("c/d", "i"), clock=virtual_clock, random=Random(0))
    for number in range(3000):
        record(recorder, regarding=ObjectReference("v1", "Pod", "ns", f"pod-{number}", ""))
    async with asyncio.TaskGroup() as group:
        group.create_task(recorder.run())
        await asyncio.sleep(QUEUE_LENGTH / SENDERS)
        recorder.stop()
    assert writer.written == QUEUE_LENGTH
    assert writer.most == SENDERS
    assert virtual_clock.monotonic() == QUEUE_LENGTH / SENDERS


async def test_a_stop_should_not_wait_long_for_a_slow_server(virtual_clock: VirtualClock) -> None:
    writer = SlowWriter()
    recorder = EventRecorder(writer, Reporter("c/d", "i"), clock=virtual_clock, random=Random(0))
    for number in range(100):
        record(recorder, regarding=ObjectReference("v1", "Pod", "ns", f"pod-{number}", ""))
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.run())
            await asyncio.sleep(0.5)
            recorder.stop()
    assert virtual_clock.monotonic() == 0.5 + STOP_SECONDS
    assert [(each["log_level"], each["events"]) for each in logs] == [("warning", 100 - writer.written)]
    assert writer.written == 2 * SENDERS


async def test_a_stop_should_not_wait_for_a_server_that_cannot_be_reached(virtual_clock: VirtualClock) -> None:
    with capture_logs() as logs:
        async with recording(virtual_clock) as (recorder, server):
            server.responder = lambda _: (Action.CLOSE,)
            record(recorder, "tried before")
            await asyncio.sleep(5)
            record(recorder, "not tried yet")
            recorder.stop()
    assert virtual_clock.monotonic() == 5
    assert sorted(event["note"] for event in bodies_of(server)) == ["not tried yet", "tried before", "tried before"]
    assert [each["event"] for each in logs if each["log_level"] == "warning"] == [
        "dropping an event, the API server cannot be reached"
    ] * 2


class CancelledWriter:
    """Waits for something that others have cancelled."""

    async def create(self, *_: object) -> bytes:
        raise asyncio.CancelledError

    patch = create


class CancelledClock(VirtualClock):
    """Tells the time for as long as nobody wants to look through series."""

    def monotonic(self) -> float:
        if super().monotonic() >= HOUSEKEEPING_SECONDS:
            raise asyncio.CancelledError
        return super().monotonic()


@pytest.mark.parametrize("part", ["sender", "housekeeping"])
async def test_a_part_that_is_cancelled_from_within_should_not_end_without_a_word(
    virtual_clock: VirtualClock, part: str
) -> None:
    writer = CancelledWriter() if part == "sender" else SlowWriter()
    clock = CancelledClock() if part == "housekeeping" else virtual_clock
    recorder = EventRecorder(writer, Reporter("c/d", "i"), clock=clock, random=Random(0))
    record(recorder)
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(2 * HOUSEKEEPING_SECONDS):
            await recorder.run()
    assert caught.group_contains(InterruptedError)
