"""Whatever a server does, its informers end up with what it has, and have told a story that makes sense."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.client.errors import ConnectFailed, ConnectionLost, RequestTimeout
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.resourceversion import Order, compare
from ktrainer.machinery.cache.objects import CachedObject
from support.cases import cases
from support.informers import WIDGET_VIEW, Recorder, build_cache, contents_of, contents_of_server, running
from support.modelevents import Json, api_error, line_of
from support.modelserver import InitialEvents, ModelServer
from support.virtualtime import VirtualTimeLoop

NAMES = ("a", "b", "c", "d", "e")

ERRORS: dict[str, Callable[[], Exception]] = {
    "refused": lambda: ConnectFailed("refused", refused=True),
    "no route": lambda: ConnectFailed("no route"),
    "lost": lambda: ConnectionLost("reset"),
    "timeout": lambda: RequestTimeout("no answer"),
    "unauthorized": lambda: api_error(401, "Unauthorized"),
    "forbidden": lambda: api_error(403, "Forbidden"),
    "absent": lambda: api_error(404, "NotFound"),
    "gone": lambda: api_error(410, "Expired"),
    "too large": lambda: api_error(504, "Timeout", cause="ResourceVersionTooLarge"),
    "busy": lambda: api_error(429, "TooManyRequests", retry_after=2),
    "broken": lambda: api_error(500, "InternalError"),
    "unavailable": lambda: api_error(503, "ServiceUnavailable"),
}

STATUSES = {"gone": (410, "Gone"), "busy": (429, "TooManyRequests"), "broken": (500, "InternalError"), "odd": (0, "")}

LINES: dict[str, bytes] = {
    "no json": b"<html>",
    "half": b'{"type":"ADDED","object":{"metadata"',
    "unknown type": line_of("RENAMED", {"metadata": {}}),
    "table": line_of("ADDED", {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "9"}}),
    "wrong types": line_of("MODIFIED", {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": 7}}),
    "too deep": b'{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":' + b"[" * 1500 + b"]" * 1500 + b"}}",
    "bookmark of nothing": line_of("BOOKMARK", {"metadata": {}}),
}

STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "update", "delete", "recreate"]), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["compact", "bookmark", "cut", "end", "freeze", "restore"]), st.just("")),
    st.tuples(st.just("send error"), st.sampled_from(sorted(STATUSES))),
    st.tuples(st.just("send line"), st.sampled_from(sorted(LINES))),
    st.tuples(st.sampled_from(["refuse list", "refuse watch"]), st.sampled_from(sorted(ERRORS))),
    st.tuples(st.just("cut next"), st.integers(0, 900).map(str)),
    st.tuples(st.just("wait"), st.sampled_from(["0", "0.4", "2", "15", "100", "700"])),
)


@dataclass
class World:
    """A server with an informer, and the steps that a schedule is made of."""

    server: ModelServer
    snapshot: tuple[int, dict[ObjectKey, Json]] = (0, {})
    restores: int = 0

    async def do(self, step: str, argument: str) -> None:
        server, key = self.server, ObjectKey("default", argument)
        match step:
            case "create" if key not in server.objects:
                server.create(argument)
            case "update" if key in server.objects:
                server.update(key)
            case "delete" if key in server.objects:
                server.delete(key)
            case "recreate" if key in server.objects:
                server.delete(key)
                server.create(argument)
            case "compact" | "bookmark" | "cut" | "end" | "freeze":
                getattr(server, step)()
            case "restore":
                server.restore(self.snapshot)
                self.restores += 1
                # Nobody can tell once the server has overtaken the version that it had before.
                await asyncio.sleep(2000)
                self.snapshot = server.snapshot()
            case "send error":
                server.send_error(*STATUSES[argument])
            case "send line":
                server.send(LINES[argument])
            case "refuse list" | "refuse watch":
                server.refusals[step.removeprefix("refuse ")].append(ERRORS[argument]())
            case "cut next":
                server.next_budget = int(argument)
            case "wait":
                await asyncio.sleep(float(argument))


@dataclass
class Monitor(Recorder):
    """Watches the version of a store on its way."""

    version_of: Callable[[], str] = str
    last: str = ""
    steps_back: int = 0

    def look(self) -> None:
        version = self.version_of()
        self.steps_back += compare(version, self.last) is Order.OLDER
        self.last = version

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        self.look()
        super().on_add(obj, is_initial)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        self.look()
        super().on_update(old, new)

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        self.look()
        super().on_delete(obj, is_final_state_unknown)


async def check_schedule(server: ModelServer, schedule: list[tuple[str, str]], seed: int) -> None:
    for name in NAMES[:3]:
        server.create(name)
    world = World(server, server.snapshot())
    cache = build_cache(server, seed=seed)
    informer = cache.register(WIDGET_VIEW)
    monitor = Monitor(version_of=lambda: informer.store.resource_version)
    informer.add_handler(monitor)
    async with running(cache):
        for step, argument in schedule:
            await world.do(step, argument)
            monitor.look()
        for refusals in server.refusals.values():
            refusals.clear()
        server.next_budget = None
        await asyncio.sleep(1500)
        assert contents_of(informer.store) == contents_of_server(server)
        assert monitor.problems == []
        assert contents_of_handler(monitor) == contents_of_server(server)
        assert monitor.steps_back <= world.restores
        assert informer.last_error is None


def contents_of_handler(recorder: Recorder) -> dict[ObjectKey, tuple[str, str]]:
    return {key: (obj.metadata.uid, obj.metadata.resource_version) for key, obj in recorder.objects.items()}


@pytest.mark.timeout(1800)
@settings(max_examples=cases(5_000))
@given(
    initial_events=st.sampled_from([InitialEvents.SERVED, InitialEvents.INVALID, InitialEvents.UNSUPPORTED]),
    end_bookmark_seconds=st.sampled_from([0.0, 0.5, 40.0]),
    page_seconds=st.sampled_from([0.0, 0.5]),
    bookmark_seconds=st.sampled_from([60.0, None]),
    gone_as_status=st.booleans(),
    schedule=st.lists(STEPS, max_size=25),
    seed=st.integers(0, 3),
)
def test_when_all_is_quiet_the_store_should_equal_the_server(
    initial_events: InitialEvents,
    end_bookmark_seconds: float,
    page_seconds: float,
    bookmark_seconds: float | None,
    gone_as_status: bool,
    schedule: list[tuple[str, str]],
    seed: int,
) -> None:
    server = ModelServer(
        initial_events=initial_events,
        end_bookmark_seconds=end_bookmark_seconds,
        page_seconds=page_seconds,
        bookmark_seconds=bookmark_seconds,
        gone_as_status=gone_as_status,
        max_page=2,
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(check_schedule(server, schedule, seed))
