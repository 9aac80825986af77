from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.client.client import Client
from ktrainer.client.errors import ConnectFailed, ConnectionLost, LineTooLong, RequestTimeout, StreamBroken, StreamIdle
from ktrainer.client.patchtype import PatchType
from ktrainer.client.selectors import Selectors
from ktrainer.client.throttle import Throttle
from ktrainer.client.watch import LINE_LIMIT
from ktrainer.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from ktrainer.kube.identity import ObjectKey, Resource
from support.clients import client_and_server, client_over, transport_to
from support.scriptedserver import CHUNKED, Action, Pause, Script, ScriptedServer, answer, chunk, failure, serving
from support.virtualtime import VirtualClock, settle

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
KEY = ObjectKey("ns", "a job")
NODE = ObjectKey("", "node")

Call = Callable[[Client], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "get": lambda client: client.get(JOBS, KEY),
    "list": lambda client: client.list_page(JOBS),
    "create": lambda client: client.create(JOBS, "ns", b"{}"),
    "update": lambda client: client.update(JOBS, KEY, b"{}"),
    "merge": lambda client: client.patch(JOBS, KEY, b"{}", PatchType.MERGE),
    "apply": lambda client: client.apply(JOBS, KEY, b"{}", field_manager="ktrainer"),
    "delete": lambda client: client.delete(JOBS, KEY),
    "delete by uid": lambda client: client.delete(JOBS, KEY, uid="1"),
    "get anything": lambda client: client.request("GET", "/version"),
    "post anything": lambda client: client.request("POST", "/review", body=b"{}"),
}
WRITES = ("create", "update", "merge", "apply", "delete", "delete by uid")
REPEATABLE = ("get", "list", "apply", "delete by uid", "get anything")

everything = pytest.mark.parametrize("name", CALLS)
CONFIG = b'{"kind": "Job"}'


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
async def pair(
    virtual_clock: VirtualClock, registry: CollectorRegistry
) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async with client_and_server(virtual_clock, registry=registry) as pair:
        yield pair


@pytest.fixture
def client(pair: tuple[Client, ScriptedServer]) -> Client:
    return pair[0]


@pytest.fixture
def server(pair: tuple[Client, ScriptedServer]) -> ScriptedServer:
    return pair[1]


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        (lambda client: client.get(JOBS, KEY), "GET", "/apis/batch/v1/namespaces/ns/jobs/a%20job"),
        (lambda client: client.get(NODES, NODE, subresource="status"), "GET", "/api/v1/nodes/node/status"),
        (lambda client: client.list_page(JOBS), "GET", "/apis/batch/v1/jobs?limit=500"),
        (
            lambda client: client.list_page(
                JOBS,
                namespace="ns",
                selectors=Selectors("a in (b,c)", "metadata.name=x"),
                limit=0,
                continue_token="e=&",
                resource_version="12",
            ),
            "GET",
            (
                "/apis/batch/v1/namespaces/ns/jobs?labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=metadata.name%3Dx"
                "&continue=e%3D%26&resourceVersion=12"
            ),
        ),
        (lambda client: client.create(NODES, "", b"{}"), "POST", "/api/v1/nodes"),
        (
            lambda client: client.create(JOBS, "ns", b"{}", field_manager="k t", dry_run=True),
            "POST",
            "/apis/batch/v1/namespaces/ns/jobs?fieldManager=k%20t&dryRun=All",
        ),
        (
            lambda client: client.update(JOBS, KEY, b"{}", subresource="status", field_manager="k"),
            "PUT",
            "/apis/batch/v1/namespaces/ns/jobs/a%20job/status?fieldManager=k",
        ),
        (
            lambda client: client.patch(JOBS, KEY, b"{}", PatchType.MERGE),
            "PATCH",
            "/apis/batch/v1/namespaces/ns/jobs/a%20job",
        ),
        (
            lambda client: client.apply(JOBS, KEY, b"{}", field_manager="k", subresource="status"),
            "PATCH",
            "/apis/batch/v1/namespaces/ns/jobs/a%20job/status?fieldManager=k&force=true",
        ),
        (
            lambda client: client.apply(NODES, NODE, b"{}", field_manager="é", force=False),
            "PATCH",
            "/api/v1/nodes/node?fieldManager=%C3%A9",
        ),
        (lambda client: client.delete(JOBS, KEY), "DELETE", "/apis/batch/v1/namespaces/ns/jobs/a%20job"),
    ],
)
async def test_a_verb_should_become_a_request(
    client: Client, server: ScriptedServer, call: Call, method: str, path: str
) -> None:
    server.will(answer(200, CONFIG))
    result = await call(client)
    [seen] = server.requests
    assert (seen.method, seen.path) == (method, path)
    assert result == (None if method == "DELETE" else CONFIG)


async def test_the_media_types_should_be_right(client: Client, server: ScriptedServer) -> None:
    server.responder = lambda _: (answer(),)
    await client.get(JOBS, KEY)
    await client.list_page(JOBS, metadata_only=True)
    await client.create(JOBS, "ns", b'{"a": 1}')
    for patch_type in PatchType:
        await client.patch(JOBS, KEY, b"{}", patch_type)
    await client.request("POST", "/x", body=b"a: b", content_type="application/yaml")
    assert [(seen.headers["accept"], seen.headers.get("content-type")) for seen in server.requests] == [
        ("application/json", None),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", None),
        ("application/json", "application/json"),
        ("application/json", "application/json-patch+json"),
        ("application/json", "application/merge-patch+json"),
        ("application/json", "application/strategic-merge-patch+json"),
        ("application/json", "application/apply-patch+yaml"),
        ("application/json", "application/yaml"),
    ]
    assert server.requests[2].body == b'{"a": 1}'


async def test_a_delete_should_carry_its_preconditions(client: Client, server: ScriptedServer) -> None:
    server.responder = lambda _: (answer(),)
    await client.delete(JOBS, KEY)
    await client.delete(JOBS, KEY, uid="u", resource_version="7", propagation="Foreground")
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    assert [orjson.loads(seen.body) for seen in server.requests] == [
        options,
        options | {"propagationPolicy": "Foreground", "preconditions": {"uid": "u", "resourceVersion": "7"}},
    ]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failure(404, "NotFound"), NotFound),
        (failure(409, "AlreadyExists"), AlreadyExists),
        (failure(409, "Conflict"), Conflict),
        (failure(410, "Expired"), Expired),
        (failure(401, "Unauthorized"), Unauthorized),
        (failure(429, "TooManyRequests"), TooManyRequests),
        (answer(500, b""), InternalError),
        (answer(503, b"<html>no backend</html>"), ServiceUnavailable),
        (answer(502, b'{"kind": "Sta'), ApiError),
        (answer(302, b"", [("Location", "/login")]), ApiError),
    ],
)
async def test_an_answer_other_than_success_should_be_raised(
    client: Client, server: ScriptedServer, reply: bytes, kind: type[ApiError]
) -> None:
    server.will(reply)
    with pytest.raises(ApiError) as caught:
        await client.get(JOBS, KEY)
    assert type(caught.value) is kind
    assert len(server.requests) == 1


@everything
async def test_every_verb_should_raise(client: Client, server: ScriptedServer, name: str) -> None:
    server.will(failure(500, "InternalError", "as expected"))
    with pytest.raises(InternalError, match="as expected"):
        await CALLS[name](client)
    assert len(server.requests) == 1


@everything
async def test_retry_after_should_be_obeyed_whatever_the_verb(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock, name: str, registry: CollectorRegistry
) -> None:
    retry = [("Retry-After", "3")]
    server.will(failure(429, "TooManyRequests", headers=retry), answer(503, b"", retry), answer())
    await CALLS[name](client)
    assert len(server.requests) == 3
    assert len({seen.body for seen in server.requests}) == 1
    assert 6 <= virtual_clock.monotonic() <= 6.6
    method = server.requests[0].method
    for code in ("429", "503"):
        labels = {"code": code, "verb": method, "host": "test"}
        assert registry.get_sample_value("rest_client_request_retries_total", labels) == 1


@everything
async def test_a_wait_that_nobody_has_time_for_should_be_left_to_the_caller(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock, name: str
) -> None:
    server.will(answer(503, b"<html>under maintenance</html>", [("Retry-After", "3600")]))
    with pytest.raises(ServiceUnavailable) as caught:
        await CALLS[name](client)
    assert caught.value.retry_after == 3600
    assert (len(server.requests), virtual_clock.monotonic()) == (1, 0)


@everything
async def test_no_request_should_be_sent_more_than_ten_times(client: Client, server: ScriptedServer, name: str) -> None:
    server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "1")]),)
    with pytest.raises(TooManyRequests) as caught:
        await CALLS[name](client)
    assert caught.value.retry_after == 1
    assert len(server.requests) == 10


async def test_a_lack_of_room_should_be_logged_with_the_flow(client: Client, server: ScriptedServer) -> None:
    server.will(failure(429, "TooManyRequests", headers=[("X-Kubernetes-PF-FlowSchema-UID", "1234")]))
    with capture_logs() as logs, pytest.raises(TooManyRequests):
        await client.list_page(JOBS)
    assert [(each["path"], each["flow_schema_uid"]) for each in logs] == [("/apis/batch/v1/jobs", "1234")]


@pytest.mark.parametrize("end", [Action.CLOSE, Action.RESET])
@everything
async def test_a_lost_answer_should_be_fetched_again_where_that_does_no_harm(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock, name: str, end: Action
) -> None:
    server.will((end,), answer())
    if name in REPEATABLE:
        await CALLS[name](client)
        assert len(server.requests) == 2
        assert 1 <= virtual_clock.monotonic() <= 1.1
    else:
        with pytest.raises(ConnectionLost):
            await CALLS[name](client)
        assert len(server.requests) == 1


@pytest.mark.parametrize("name", REPEATABLE)
async def test_a_connection_that_the_server_has_given_up_should_be_replaced_at_once(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock, name: str
) -> None:
    server.will(answer(), (Action.CLOSE,), answer())
    for _ in range(2):
        await CALLS[name](client)
    assert [seen.connection for seen in server.requests] == [1, 1, 2]
    assert virtual_clock.monotonic() == 0


async def test_lost_answers_should_not_be_fetched_for_ever(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.responder = lambda _: (Action.CLOSE,)
    with pytest.raises(ConnectionLost):
        await client.get(JOBS, KEY)
    assert len(server.requests) == 10
    assert 9 <= virtual_clock.monotonic() <= 9.9


@pytest.mark.parametrize(("name", "seconds"), [(name, 30 if name in WRITES else 60) for name in CALLS])
async def test_every_request_should_have_a_time_limit(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock, name: str, seconds: float
) -> None:
    server.will((Action.HANG,))
    with pytest.raises(RequestTimeout):
        await CALLS[name](client)
    assert virtual_clock.monotonic() == seconds
    assert len(server.requests) == 1


@everything
async def test_the_fence_should_be_asked_before_each_write_leaves(virtual_clock: VirtualClock, name: str) -> None:
    asked: list[float] = []

    def fence() -> None:
        asked.append(virtual_clock.monotonic())
        if virtual_clock.monotonic() >= 5:
            raise PermissionError("not leading")

    async with client_and_server(virtual_clock, fence=fence) as (client, server):
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "3")]),)
        if name in WRITES:
            with pytest.raises(PermissionError):
                await CALLS[name](client)
            assert len(asked) == 3
            assert len(server.requests) == 2
        else:
            with pytest.raises(TooManyRequests):
                await CALLS[name](client)
            assert not asked


async def test_the_fence_should_be_asked_after_the_wait_for_the_rate_limit(virtual_clock: VirtualClock) -> None:
    asked: list[float] = []
    async with serving() as server, transport_to(server, virtual_clock) as transport:
        server.responder = lambda _: (answer(),)
        client = client_over(
            transport,
            virtual_clock,
            fence=lambda: asked.append(virtual_clock.monotonic()),
            throttle=Throttle(0.1, 1, virtual_clock),
        )
        for _ in range(2):
            await client.create(JOBS, "ns", b"{}")
    assert asked == [0, 10]


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_behind_a_fence_should_be_given_up_early(virtual_clock: VirtualClock, name: str) -> None:
    async with client_and_server(virtual_clock, fence=lambda: None) as (client, server):
        server.will((Action.HANG,))
        with pytest.raises(RequestTimeout):
            await CALLS[name](client)
    assert virtual_clock.monotonic() == 5


async def test_retries_should_pass_the_rate_limit_again(
    virtual_clock: VirtualClock, registry: CollectorRegistry
) -> None:
    async with serving() as server, transport_to(server, virtual_clock) as transport:
        throttle = Throttle(0.1, 2, virtual_clock)
        client = client_over(transport, virtual_clock, throttle=throttle, registry=registry)
        retry = [("Retry-After", "0")]
        server.will(answer(503, b"", retry), answer(503, b"", retry), answer())
        await client.get(JOBS, KEY)
    assert virtual_clock.monotonic() == 10
    labels = {"verb": "GET", "host": "test"}
    assert registry.get_sample_value("rest_client_rate_limiter_duration_seconds_sum", labels) == 10


async def test_answers_should_be_counted_and_tell_the_time(
    client: Client, server: ScriptedServer, registry: CollectorRegistry
) -> None:
    date = [("Date", "Fri, 01 Jan 2038 00:00:00 GMT"), ("Warning", '299 - "old"')]
    server.will((Pause(0.5), answer(200, b"12345", date)), answer(404, b"", date))
    with capture_logs() as logs:
        await client.create(JOBS, "ns", b"123")
        with pytest.raises(NotFound):
            await client.get(JOBS, KEY)
    assert [each["warning"] for each in logs] == ["old"]
    assert client.server_time.now().year == 2038

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"host": "test"} | labels)

    assert value("rest_client_requests_total", code="200", method="POST") == 1
    assert value("rest_client_requests_total", code="404", method="GET") == 1
    assert value("rest_client_request_duration_seconds_sum", verb="POST") == 0.5
    assert value("rest_client_request_size_bytes_sum", verb="POST") == 3
    assert value("rest_client_response_size_bytes_sum", verb="POST") == 5


async def test_failures_should_be_counted(client: Client, server: ScriptedServer, registry: CollectorRegistry) -> None:
    server.will((Action.HANG,))
    with pytest.raises(RequestTimeout):
        await client.create(JOBS, "ns", b"{}")
    labels = {"code": "<error>", "method": "POST", "host": "test"}
    assert registry.get_sample_value("rest_client_requests_total", labels) == 1


async def test_a_name_that_would_leave_its_place_should_not_be_sent(client: Client, server: ScriptedServer) -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        await client.get(JOBS, ObjectKey("ns", ".."))
    assert not server.requests


async def watch(client: Client, *, lines: list[bytes] | None = None, **options: Any) -> list[bytes]:
    """The events of a watch; those that came before an error are in `lines`, too."""
    lines = [] if lines is None else lines
    settings: dict[str, Any] = {"resource_version": "5", "timeout_seconds": 300, "idle_seconds": 80} | options
    async with client.watch(JOBS, **settings) as events:
        async for line in events:
            lines.append(line)
    return lines


async def test_a_watch_should_become_a_request(client: Client, server: ScriptedServer) -> None:
    server.responder = lambda _: (CHUNKED, chunk(b""))
    await watch(client)
    await watch(
        client,
        namespace="ns",
        selectors=Selectors("a=b", "c=d"),
        resource_version="",
        initial_events=True,
        metadata_only=True,
        timeout_seconds=421,
    )
    assert [seen.path for seen in server.requests] == [
        "/apis/batch/v1/jobs?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300",
        (
            "/apis/batch/v1/namespaces/ns/jobs?watch=true&allowWatchBookmarks=true&timeoutSeconds=421"
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=a%3Db&fieldSelector=c%3Dd"
        ),
    ]
    assert [seen.headers["accept-encoding"] for seen in server.requests] == ["identity", "identity"]
    assert [seen.headers["accept"] for seen in server.requests] == [
        "application/json",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ]


async def test_a_watch_should_give_every_event(client: Client, server: ScriptedServer) -> None:
    added = b'{"type":"ADDED","object":{"kind":"Job","metadata":{"name":"\xc3\xa9"}}}'
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}'
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'
    body = added + b"\n" + bookmark + b"\n" + gone + b"\n"
    for place in range(1, len(body)):
        server.will((CHUNKED, chunk(body[:place]), chunk(body[place:]), chunk(b"")))
        assert await watch(client) == [added, bookmark, gone]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param((Action.CLOSE,), id="by a close"),
        pytest.param((Action.RESET,), id="by a reset"),
        pytest.param((chunk(b'{"half": ')[:5], Action.CLOSE), id="within a line"),
    ],
)
async def test_a_watch_that_breaks_should_say_so_after_what_came(
    client: Client, server: ScriptedServer, script: Script
) -> None:
    server.will((CHUNKED, chunk(b"{}\n"), Pause(1), *script))
    seen: list[bytes] = []
    with pytest.raises(StreamBroken):
        await watch(client, lines=seen)
    assert seen == [b"{}"]
    assert len(server.requests) == 1


async def test_a_watch_should_end_when_its_peer_is_silent(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED, Action.HANG))
    with pytest.raises(StreamIdle):
        await watch(client)
    assert virtual_clock.monotonic() == 80


async def test_a_watch_without_bookmarks_should_end_half_a_minute_after_its_time(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED, Action.HANG))
    with pytest.raises(StreamBroken):
        await watch(client, idle_seconds=None)
    assert virtual_clock.monotonic() == 330


async def test_a_watch_should_give_up_on_an_endless_line(client: Client, server: ScriptedServer) -> None:
    server.will((CHUNKED, chunk(b"{}\n" + b"x" * (LINE_LIMIT + 1)), Action.HANG))
    with pytest.raises(LineTooLong):
        await watch(client)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (failure(410, "Expired"), Expired),
        (failure(429, "TooManyRequests"), TooManyRequests),
        (answer(502, b"<html>" + b"x" * 200_000), ApiError),
        (answer(404, b""), NotFound),
    ],
)
async def test_a_watch_that_is_refused_should_raise_why(
    client: Client, server: ScriptedServer, reply: bytes, kind: type[ApiError]
) -> None:
    server.will(reply)
    with pytest.raises(ApiError) as caught:
        await watch(client)
    assert type(caught.value) is kind
    assert len(server.requests) == 1


async def test_a_refusal_without_end_should_not_be_read_to_its_end(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED.replace(b"200", b"403"), chunk(b"x" * 100_000), Action.HANG))
    with pytest.raises(Forbidden):
        await watch(client)
    assert virtual_clock.monotonic() == 0


async def test_opening_a_watch_should_be_tried_again_like_a_read(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will(
        failure(429, "TooManyRequests", headers=[("Retry-After", "1")]),
        (Action.CLOSE,),
        (CHUNKED, chunk(b"{}\n"), chunk(b"")),
    )
    assert await watch(client) == [b"{}"]
    assert len(server.requests) == 3
    assert virtual_clock.monotonic() >= 1


async def test_opening_a_watch_should_not_wait_for_an_hour(
    client: Client, server: ScriptedServer, virtual_clock: VirtualClock
) -> None:
    server.will(
        failure(429, "TooManyRequests", headers=[("Retry-After", "60")]),
        failure(429, "TooManyRequests", headers=[("Retry-After", "3600")]),
    )
    with pytest.raises(TooManyRequests) as caught:
        await watch(client)
    assert caught.value.retry_after == 3600
    assert 60 <= virtual_clock.monotonic() <= 66


async def test_a_watch_should_not_wait_for_the_rate_limit(virtual_clock: VirtualClock) -> None:
    async with serving() as server, transport_to(server, virtual_clock) as transport:
        server.responder = lambda _: (CHUNKED, chunk(b""))
        client = client_over(transport, virtual_clock, throttle=Throttle(0.001, 1, virtual_clock))
        for _ in range(5):
            await watch(client)
    assert virtual_clock.monotonic() == 0


async def test_a_watch_from_nowhere_should_say_that_the_connection_was_refused(virtual_clock: VirtualClock) -> None:
    async with transport_to("http://127.0.0.1:1", virtual_clock) as transport:
        with pytest.raises(ConnectFailed) as caught:
            await watch(client_over(transport, virtual_clock))
    assert caught.value.refused


async def test_leaving_a_watch_early_should_close_its_connection(client: Client, server: ScriptedServer) -> None:
    server.will((CHUNKED, chunk(b"{}\n"), Action.HANG), answer())
    async with client.watch(JOBS, resource_version="", timeout_seconds=300, idle_seconds=80) as events:
        assert await anext(events) == b"{}"
    await settle()
    await client.get(JOBS, KEY)
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_watches_should_use_the_transport_that_is_theirs(virtual_clock: VirtualClock) -> None:
    async with (
        serving() as server,
        transport_to(server, virtual_clock) as requests,
        transport_to(server, virtual_clock) as watches,
    ):
        client = client_over(requests, virtual_clock, watch_transport=watches)
        server.will((CHUNKED, chunk(b"{}\n"), chunk(b"")), answer())
        await watch(client)
        await client.get(JOBS, KEY)
    assert [seen.connection for seen in server.requests] == [1, 2]
