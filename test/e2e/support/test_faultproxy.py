"""The fault proxy before a real API server: each fault is seen by a client that knows nothing of it."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from clusters.wait import wait_for
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import (
    CutStream,
    Delay,
    LoseAnswer,
    Refuse,
    Respond,
    RewriteLines,
    error_event,
    status,
)

CONFIGMAPS = "/api/v1/namespaces/{}/configmaps"


def configmap(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def is_write(request: Request) -> bool:
    return request.is_write


def is_watch(request: Request) -> bool:
    return request.is_watch


@pytest.fixture
def proxy(cluster: Folder, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.kubeconfig("admin"), tmp_path) as running:
        yield running


@pytest.fixture
def api(proxy: FaultProxy) -> Iterator[Api]:
    with closing(Api(proxy.kubeconfig)) as connected:
        yield connected


def lines_of(api: Api, namespace: str, seconds: int = 1) -> list[bytes]:
    """The lines of a watch until it ends, however it ends."""
    path = f"{CONFIGMAPS.format(namespace)}?watch=1&timeoutSeconds={seconds}&fieldSelector=metadata.name=one"
    connection = http.client.HTTPSConnection(str(api._address.hostname), api._address.port, context=api._tls)
    lines = []
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        while line := answer.readline():
            lines.append(line)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
    return lines


def test_without_rules_everything_should_pass(api: Api, admin: Api, namespace: str, proxy: FaultProxy) -> None:
    path = CONFIGMAPS.format(namespace)
    made = api.create(path, configmap("one", a="b"))
    assert admin.get(f"{path}/one") == made
    with pytest.raises(Refused, match="404"):
        api.get(f"{path}/two")
    assert [(each.request.method, each.status) for each in proxy.seen] == [("POST", 201), ("GET", 404)]
    (event,) = lines_of(api, namespace)
    assert json.loads(event)["object"]["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_lost_answer_should_have_been_done_all_the_same(
    api: Api, admin: Api, namespace: str, proxy: FaultProxy
) -> None:
    proxy.rules = [LoseAnswer(is_write, times=1)]
    path = CONFIGMAPS.format(namespace)
    with pytest.raises((OSError, http.client.HTTPException)):
        api.create(path, configmap("one"))
    assert admin.get(f"{path}/one")["metadata"]["name"] == "one"
    with pytest.raises(Refused, match="409 AlreadyExists"):
        api.create(path, configmap("one"))


def test_a_refused_request_should_not_have_been_done(api: Api, admin: Api, namespace: str, proxy: FaultProxy) -> None:
    proxy.rules = [Refuse(is_write, times=1)]
    path = CONFIGMAPS.format(namespace)
    with pytest.raises((OSError, http.client.HTTPException)):
        api.create(path, configmap("one"))
    with pytest.raises(Refused, match="404"):
        admin.get(f"{path}/one")


def test_a_forged_answer_should_be_the_only_one(api: Api, namespace: str, proxy: FaultProxy) -> None:
    body = status(429, "TooManyRequests", "later")
    proxy.rules = [Respond(lambda _: True, times=1, status=429, body=body, headers=[("Retry-After", "1")])]
    with pytest.raises(Refused, match="429 TooManyRequests: later"):
        api.get(CONFIGMAPS.format(namespace))
    assert api.get(CONFIGMAPS.format(namespace))["kind"] == "ConfigMapList"


def test_a_delayed_request_should_be_late(api: Api, namespace: str, proxy: FaultProxy) -> None:
    proxy.rules = [Delay(lambda _: True, seconds=0.5)]
    began = time.monotonic()
    api.get(CONFIGMAPS.format(namespace))
    assert time.monotonic() - began >= 0.5


@pytest.mark.parametrize("after", [1, 5, 20, 100])
def test_a_watch_should_be_cut_at_the_byte(api: Api, namespace: str, proxy: FaultProxy, after: int) -> None:
    api.create(CONFIGMAPS.format(namespace), configmap("one"))
    (whole,) = lines_of(api, namespace)
    proxy.rules = [CutStream(is_watch, times=1, after_bytes=after)]
    lines = lines_of(api, namespace)
    # Of the bytes that were let through, a few are the head of the chunk.
    assert len(b"".join(lines)) < after
    assert whole.startswith(b"".join(lines))
    assert lines_of(api, namespace) == [whole]


def test_events_should_be_rewritten(api: Api, namespace: str, proxy: FaultProxy) -> None:
    api.create(CONFIGMAPS.format(namespace), configmap("one"))
    expired = error_event(410, "Expired")
    proxy.rules = [RewriteLines(is_watch, rewrite=lambda line: [line, expired])]
    assert lines_of(api, namespace)[1] == expired


def test_a_frozen_proxy_should_keep_connections_open_and_silent(api: Api, namespace: str, proxy: FaultProxy) -> None:
    proxy.freeze()
    answers: list[Object] = []
    asking = threading.Thread(target=lambda: answers.append(api.get(CONFIGMAPS.format(namespace))))
    asking.start()
    assert not wait_for(lambda: bool(answers), 1.0)
    proxy.thaw()
    asking.join(10)
    assert [answer["kind"] for answer in answers] == ["ConfigMapList"]


def test_all_connections_should_be_cut_at_once(api: Api, namespace: str, proxy: FaultProxy) -> None:
    api.get(CONFIGMAPS.format(namespace))
    proxy.cut_all()
    with pytest.raises((OSError, http.client.HTTPException)):
        api.get(CONFIGMAPS.format(namespace))
    assert api.get(CONFIGMAPS.format(namespace))["kind"] == "ConfigMapList"
