from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed, denied
from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.runner import LARGE_BODY_BYTES
from ktrainer.machinery.admission.server import (
    MAX_BODY_BYTES,
    MAX_LARGE_READS,
    AdmissionServer,
    ServerOptions,
    seconds_of,
)
from ktrainer.machinery.certificates.serving import ServingCertificate
from support.admissionserver import served
from support.certificates import Issuer
from support.httpspeer import head_of
from support.reviews import accept, review
from support.virtualtime import settle


async def judge(request: AdmissionRequest) -> AdmissionResponse:
    return denied("no such luck") if request.name == "bad" else allowed()


JUDGE = Hook("/validate", judge, is_mutating=False)


class Slow:
    """A handler that takes its time, and remembers what became of its calls."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started = 0
        self.ended: list[str] = []
        self.hook = Hook("/slow", self.handle, is_mutating=False)

    async def handle(self, request: AdmissionRequest) -> AdmissionResponse:
        self.started += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")
        return allowed()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_one_connection_should_serve_many_reviews() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        for uid, name in (("u-1", "good"), ("u-2", "bad"), ("u-3", "good")):
            answer = await peer.post("/validate?timeout=10s", review(uid, name=name))
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert accept(answer.body, uid, is_mutating=False)["allowed"] is (name == "good")
        assert webhook.count("/validate", 200) == 3
        assert webhook.in_flight("/validate") == 0


@pytest.mark.parametrize(
    "method, path, headers, status",
    [
        pytest.param("POST", "/other", {}, 404, id="no such hook"),
        pytest.param("GET", "/validate", {}, 405, id="not POST"),
        pytest.param("POST", "/validate", {"Content_Type": "text/plain"}, 415, id="not JSON"),
        pytest.param(
            "POST", "/validate", {"Content_Type": "application/json; charset=utf-8"}, 415, id="not quite JSON"
        ),
        pytest.param("POST", "/validate", {"Content_Type": ""}, 415, id="not said to be JSON"),
    ],
)
async def test_what_is_no_review_should_be_refused_before_it_is_read(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        answer = await peer.request(method, path, review(), **headers)
        assert answer.status == status
        assert answer.headers.get("allow") == ("POST" if status == 405 else None)
        assert webhook.count("/validate", status) == (None if status == 404 else 1)


async def test_garbage_should_be_answered_with_a_review() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        for body in (b"", b"{", review(operation="PONDER")):
            answer = await peer.post("/validate", body)
            uid = "u-1" if body.startswith(b'{"api') else ""
            assert (answer.status, accept(answer.body, uid, is_mutating=False)["status"]["code"]) == (200, 400)


async def test_a_compressed_body_should_not_be_unpacked() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        answer = await peer.request("POST", "/validate", gzip.compress(review()), Content_Encoding="gzip")
        assert accept(answer.body, "", is_mutating=False)["status"]["code"] == 400


async def test_a_body_of_seven_mebibytes_should_pass_and_a_larger_one_not() -> None:
    empty = review(object={"a": ""})
    body = review(object={"a": "x" * (MAX_BODY_BYTES - len(empty))})
    assert len(body) == MAX_BODY_BYTES
    async with served(JUDGE) as webhook:
        async with webhook.connect() as peer:
            answer = await peer.post("/validate", body)
            assert accept(answer.body, "u-1", is_mutating=False)["allowed"]
        async with webhook.connect() as peer:
            await peer.send(head_of("POST", "/validate", MAX_BODY_BYTES + 1))
            assert (await peer.receive()).status == 413
        assert webhook.count("/validate", 413) == 1


async def test_a_body_that_does_not_tell_its_length_should_be_limited_too() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        await peer.send(head_of("POST", "/validate", 0, Content_Length="", Transfer_Encoding="chunked"))
        chunk = b"x" * (1024 * 1024)
        for _ in range(8):
            await peer.send(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        assert (await peer.receive()).status == 413


async def test_a_body_that_does_not_come_should_not_be_waited_for_beyond_the_deadline() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        body = review()
        await peer.send(head_of("POST", "/validate?timeout=5s", len(body)) + body[:-1])
        answer = await peer.receive()
        assert (answer.status, answer.headers["connection"], now()) == (408, "close", 4.5)
        assert webhook.count("/validate", 408) == 1


async def test_only_so_many_large_bodies_should_be_taken_in_at_a_time() -> None:
    async with served(JUDGE) as webhook, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(webhook.connect()) for _ in range(MAX_LARGE_READS + 1)]
        body = review(object={"a": "x" * LARGE_BODY_BYTES})
        for peer in peers[:-1]:
            await peer.send(head_of("POST", "/validate?timeout=8s", len(body)) + body[:-1])
        await settle()
        last = asyncio.create_task(peers[-1].post("/validate?timeout=20s", body))
        await settle()
        assert not last.done()
        async with webhook.connect() as small:
            assert (await small.post("/validate", review())).status == 200
            assert now() == 0
        assert ((await last).status, now()) == (200, 7.5)


@pytest.mark.parametrize(
    "timeout, seconds",
    [("10s", 9.5), ("1s", 0.5), ("30s", 29.5), ("99s", 29.5), ("0s", 0.5), ("", 9.5), ("1m", 9.5), ("-1s", 9.5)],
)
def test_the_deadline_should_be_a_little_before_the_callers(timeout: str, seconds: float) -> None:
    assert seconds_of(timeout) == seconds


async def test_a_slow_handler_should_be_answered_for_at_its_deadline() -> None:
    slow = Slow(60)
    async with served(slow.hook) as webhook, webhook.connect() as peer:
        answer = await peer.post("/slow?timeout=3s", review())
        assert accept(answer.body, "u-1", is_mutating=False)["status"]["reason"] == "ServerTimeout"
        assert (answer.status, now(), slow.ended) == (200, 2.5, ["cancelled"])


async def test_slow_handlers_should_not_hold_up_others() -> None:
    slow = Slow(12)
    async with served(slow.hook, JUDGE) as webhook, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(webhook.connect()) for _ in range(50)]
        calls = [asyncio.create_task(peer.post("/slow?timeout=30s", review())) for peer in peers]
        await settle()
        assert (slow.started, webhook.in_flight("/slow")) == (50, 50)
        async with webhook.connect() as peer:
            for _ in range(20):
                assert (await peer.post("/validate", review())).status == 200
        assert now() == 0
        assert {answer.status for answer in await asyncio.gather(*calls)} == {200}


async def test_a_handler_should_be_cancelled_when_its_caller_goes_away() -> None:
    slow = Slow(60)
    async with served(slow.hook) as webhook:
        async with webhook.connect() as peer:
            await peer.send(head_of("POST", "/slow?timeout=30s", len(review())) + review())
            await settle()
            peer.abort()
        await settle()
        assert (slow.started, slow.ended, now()) == (1, ["cancelled"], 0)
        assert (webhook.count("/slow", 499), webhook.in_flight("/slow")) == (1, 0)


async def test_two_hooks_should_not_share_a_path() -> None:
    server = AdmissionServer(ServingCertificate().context, WebhookMetrics(CollectorRegistry()), ServerOptions())
    server.register(JUDGE)
    with pytest.raises(ValueError, match="already a hook at /validate"):
        server.register(JUDGE)


async def test_only_clients_of_the_right_name_should_be_heard_where_names_are_given() -> None:
    clients = Issuer()
    names = frozenset({"kube-apiserver"})
    async with served(JUDGE, client_authorities=clients.authority, client_names=names) as webhook:
        for name, status in (("kube-apiserver", 200), ("kubelet", 403)):
            async with webhook.connect(clients.pair(name)) as peer:
                assert (await peer.post("/validate", review())).status == status


async def test_a_server_that_stops_should_serve_on_and_send_its_callers_away() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as kept:
        assert "connection" not in (await kept.post("/validate", review())).headers
        webhook.server.stop()
        await asyncio.sleep(9.9)
        async with webhook.connect() as late:
            assert (await late.post("/validate", review())).headers["connection"] == "close"
            assert await late.is_closed()
        assert (await kept.post("/validate", review())).headers["connection"] == "close"
        await webhook.task
        assert now() == pytest.approx(10)
        with pytest.raises(ConnectionRefusedError):
            await webhook.connect().__aenter__()


async def test_what_is_under_way_when_a_server_stops_should_be_finished() -> None:
    slow = Slow(25)
    async with served(slow.hook) as webhook, webhook.connect() as peer, webhook.connect() as idle:
        webhook.server.stop()
        await asyncio.sleep(9)
        call = asyncio.create_task(peer.post("/slow?timeout=30s", review()))
        await asyncio.sleep(2)
        with pytest.raises(ConnectionRefusedError):
            await webhook.connect().__aenter__()
        answer = await call
        assert (answer.status, answer.headers["connection"], slow.ended) == (200, "close", ["answered"])
        await webhook.task
        assert now() == pytest.approx(34)
        assert await idle.is_closed()


async def test_a_body_that_arrives_while_a_server_stops_should_be_read_to_the_end() -> None:
    async with served(JUDGE) as webhook, webhook.connect() as peer:
        body = review()
        webhook.server.stop()
        await asyncio.sleep(9)
        await peer.send(head_of("POST", "/validate?timeout=30s", len(body)) + body[:-10])
        await asyncio.sleep(3)
        await peer.send(body[-10:])
        answer = await peer.receive()
        assert accept(answer.body, "u-1", is_mutating=False)["allowed"]
        await webhook.task
        assert now() == pytest.approx(12)


async def test_a_rolling_restart_should_lose_no_review() -> None:
    async def call_on_and_on() -> None:
        while not done.is_set():
            async with endpoint.connect() as peer:
                is_open = True
                while is_open and not done.is_set():
                    answer = await peer.post("/validate?timeout=10s", review())
                    assert accept(answer.body, "u-1", is_mutating=False)["allowed"]
                    is_open = answer.headers.get("connection") != "close"
                    await asyncio.sleep(0.5)

    done = asyncio.Event()
    async with served(JUDGE) as first, served(JUDGE) as second:
        endpoint = first
        async with asyncio.TaskGroup() as callers:
            for _ in range(5):
                callers.create_task(call_on_and_on())
            await asyncio.sleep(5)
            first.server.stop()
            await asyncio.sleep(5)
            endpoint = second  # callers hear of it with a delay
            await first.task
            await asyncio.sleep(5)
            done.set()
        assert first.count("/validate", 200) == pytest.approx(2 * 5 * 10, rel=0.2)
        assert second.count("/validate", 200) == pytest.approx(2 * 5 * 10, rel=0.2)


async def test_a_server_that_is_cancelled_should_drop_everything_at_once() -> None:
    slow = Slow(60)
    async with served(slow.hook) as webhook, webhook.connect() as peer, webhook.connect() as idle:
        await peer.send(head_of("POST", "/slow?timeout=30s", len(review())) + review())
        await settle()
        webhook.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await webhook.task
        assert slow.ended == ["cancelled"]
        assert await peer.is_closed()
        assert await idle.is_closed()
        assert now() < 1


async def test_a_port_that_is_taken_should_be_an_error() -> None:
    async with served(JUDGE) as webhook:
        certificate = ServingCertificate()
        options = ServerOptions(host="127.0.0.1", port=webhook.port)
        second = AdmissionServer(certificate.context, WebhookMetrics(CollectorRegistry()), options)
        with pytest.raises(OSError, match="address already in use"):
            await second.run()


def test_serving_should_not_load_the_library_that_makes_certificates() -> None:
    program = (
        "import sys, ktrainer.machinery.admission.server, ktrainer.machinery.certificates.serving; print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "ktrainer.machinery.admission.server" in modules
    assert not {name for name in modules if name.startswith("cryptography")}
