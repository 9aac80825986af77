"""ktrainer's own client against a real API server; what it did is seen with another client."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
import yaml
from prometheus_client import CollectorRegistry

from clusters.api import Api
from clusters.folder import Folder
from ktrainer.aio.clock import SystemClock
from ktrainer.client.client import Client
from ktrainer.client.config.config import ConnectionConfig, TokenFile, load_config
from ktrainer.client.connect import Connection, connect
from ktrainer.client.discovery import Discovery
from ktrainer.client.events.body import ObjectReference, Reporter
from ktrainer.client.events.recorder import EventRecorder
from ktrainer.client.patchtype import PatchType
from ktrainer.client.selectors import Selectors
from ktrainer.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, Timeout, Unauthorized
from ktrainer.kube.identity import ObjectKey, Resource
from support.waiting import Waiter

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


def connection_of(config: ConnectionConfig) -> Connection:
    return connect(config, component="e2e", clock=SystemClock(), registry=CollectorRegistry(), qps=1000, burst=1000)


@pytest.fixture
async def connection(cluster: Folder) -> AsyncIterator[Connection]:
    connection = connection_of(load_config(cluster.kubeconfig("admin"), None))
    yield connection
    await connection.close()


@pytest.fixture
def client(connection: Connection) -> Client:
    return connection.client


def configmap(name: str, data: dict[str, str] | None = None, **metadata: object) -> bytes:
    return orjson.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name} | metadata, "data": data or {}}
    )


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        for _ in count():
            if await holds():
                return
            await asyncio.sleep(0.2)


async def test_the_verbs_should_do_what_they_say(client: Client, admin: Api, namespace: str) -> None:
    key = ObjectKey(namespace, "one")
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    created = orjson.loads(await client.create(CONFIGMAPS, namespace, configmap("one", {"a": "1"}), field_manager="me"))
    assert admin.get(path)["data"] == {"a": "1"}
    with pytest.raises(AlreadyExists):
        await client.create(CONFIGMAPS, namespace, configmap("one"))
    await client.create(CONFIGMAPS, namespace, configmap("dry"), dry_run=True)
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, ObjectKey(namespace, "dry"))
    assert orjson.loads(await client.get(CONFIGMAPS, key)) == admin.get(path)

    await client.patch(CONFIGMAPS, key, b'{"data": {"b": "2"}}', PatchType.MERGE)
    await client.patch(CONFIGMAPS, key, b'[{"op": "add", "path": "/data/c", "value": "3"}]', PatchType.JSON)
    await client.patch(CONFIGMAPS, key, b'{"data": {"d": "4"}}', PatchType.STRATEGIC)
    assert admin.get(path)["data"] == {"a": "1", "b": "2", "c": "3", "d": "4"}
    with pytest.raises(Conflict):
        await client.update(CONFIGMAPS, key, orjson.dumps(created))
    current = admin.get(path) | {"data": {"e": "5"}}
    await client.update(CONFIGMAPS, key, orjson.dumps(current))
    assert admin.get(path)["data"] == {"e": "5"}

    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, key, uid="another")
    await client.delete(CONFIGMAPS, key, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.delete(CONFIGMAPS, key)


async def test_applying_again_should_change_nothing(client: Client, admin: Api, namespace: str) -> None:
    key = ObjectKey(namespace, "applied")
    body = configmap("applied", {"a": "1"})
    versions = {
        orjson.loads(await client.apply(CONFIGMAPS, key, body, field_manager="me"))["metadata"]["resourceVersion"]
        for _ in range(3)
    }
    assert len(versions) == 1
    theirs = configmap("applied", {"a": "2"})
    with pytest.raises(Conflict):
        await client.apply(CONFIGMAPS, key, theirs, field_manager="they", force=False)
    await client.apply(CONFIGMAPS, key, theirs, field_manager="they")
    fetched = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/applied")
    assert fetched["data"] == {"a": "2"}
    with pytest.raises(Invalid):
        await client.apply(CONFIGMAPS, ObjectKey(namespace, "Bad_Name"), configmap("Bad_Name"), field_manager="me")


async def test_a_list_should_come_in_pages_and_by_selector(client: Client, namespace: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(7):
            body = configmap(f"page-{number}", labels={"parity": "odd" if number % 2 else "even", "test": "pages"})
            group.create_task(client.create(CONFIGMAPS, namespace, body))
    names: list[str] = []
    token = ""
    pages = 0
    while pages == 0 or token:
        page = orjson.loads(
            await client.list_page(
                CONFIGMAPS, namespace=namespace, selectors=Selectors("test=pages"), limit=3, continue_token=token
            )
        )
        names += [each["metadata"]["name"] for each in page["items"]]
        token = page["metadata"].get("continue", "")
        pages += 1
    assert (pages, names) == (3, [f"page-{number}" for number in range(7)])
    odd = orjson.loads(
        await client.list_page(
            CONFIGMAPS,
            namespace=namespace,
            selectors=Selectors("parity in (odd)", "metadata.name!=page-1"),
            metadata_only=True,
        )
    )
    assert odd["kind"] == "PartialObjectMetadataList"
    assert [each["metadata"]["name"] for each in odd["items"]] == ["page-3", "page-5"]


async def events_until(client: Client, namespace: str, count: int, **options: Any) -> list[Any]:
    events: list[Any] = []
    async with (
        asyncio.timeout(30),
        client.watch(CONFIGMAPS, namespace=namespace, timeout_seconds=300, idle_seconds=80, **options) as lines,
    ):
        async for line in lines:
            events.append(orjson.loads(line))
            if len(events) == count:
                break
    return events


async def test_a_watch_should_show_what_happens(client: Client, namespace: str) -> None:
    version = orjson.loads(await client.list_page(CONFIGMAPS, namespace=namespace))["metadata"]["resourceVersion"]
    key = ObjectKey(namespace, "seen")
    big = "é" * 400_000
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(
            events_until(
                client, namespace, 3, resource_version=version, selectors=Selectors(fields="metadata.name=seen")
            )
        )
        await client.create(CONFIGMAPS, namespace, configmap("seen"))
        await client.create(CONFIGMAPS, namespace, configmap("not-seen"))
        await client.apply(CONFIGMAPS, key, configmap("seen", {"big": big}), field_manager="me")
        await client.delete(CONFIGMAPS, key)
    added, modified, deleted = watching.result()
    assert [each["type"] for each in (added, modified, deleted)] == ["ADDED", "MODIFIED", "DELETED"]
    assert modified["object"]["data"]["big"] == big


async def test_a_watch_should_give_the_first_state_when_asked(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(CONFIGMAPS, namespace, configmap(name, labels={"test": "first"}))
    version = orjson.loads(await client.get(CONFIGMAPS, ObjectKey(namespace, "b")))["metadata"]["resourceVersion"]
    # That of the authority comes when the controller manager has got round to it.
    ours = Selectors("test=first")
    *found, end = await events_until(
        client, namespace, 3, resource_version=version, selectors=ours, initial_events=True, metadata_only=True
    )
    assert {each["object"]["metadata"]["name"] for each in found} == {"a", "b"}
    assert {each["object"]["kind"] for each in found} == {"PartialObjectMetadata"}
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_should_end_when_its_time_is_over(client: Client, namespace: str) -> None:
    lines: list[bytes] = []
    async with (
        asyncio.timeout(20),
        client.watch(
            CONFIGMAPS, namespace=namespace, resource_version="", timeout_seconds=1, idle_seconds=80
        ) as events,
    ):
        lines += [line async for line in events]
    assert all(orjson.loads(line)["type"] in {"ADDED", "BOOKMARK"} for line in lines)


async def test_a_version_that_the_server_does_not_have_should_be_told_soon(client: Client, namespace: str) -> None:
    async with asyncio.timeout(8):
        with pytest.raises(Timeout) as caught:
            await client.list_page(CONFIGMAPS, namespace=namespace, limit=0, resource_version="999999999")
    assert caught.value.resource_version_too_large


async def test_the_servers_time_should_be_ours_on_one_machine(client: Client) -> None:
    assert (await client.request("GET", "/version")).status == 200
    assert abs(client.server_time.skew.total_seconds()) < 2


async def test_what_a_user_may_not_do_should_be_forbidden(cluster: Folder, namespace: str) -> None:
    connection = connection_of(load_config(cluster.kubeconfig("trainer"), None))
    with pytest.raises(Forbidden):
        await connection.client.get(CONFIGMAPS, ObjectKey(namespace, "x"))
    await connection.close()


async def test_events_should_be_recorded(connection: Connection, namespace: str, waiter: Waiter, admin: Api) -> None:
    made = orjson.loads(await connection.client.create(CONFIGMAPS, namespace, configmap("thing")))
    regarding = ObjectReference("v1", "ConfigMap", namespace, "thing", made["metadata"]["uid"])
    reporter = Reporter("trainer.kubeflow.org/e2e", "e2e-1")
    recorder = EventRecorder(connection.unfenced, reporter, clock=SystemClock(), random=Random())
    async with asyncio.TaskGroup() as group:
        group.create_task(recorder.run())
        for _ in range(3):
            recorder.record(regarding, "Warning", "Failed", "Reconcile", "100% wrong: " + "é" * 2000)
        cluster_wide = ObjectReference("v1", "Namespace", "", namespace, str(uuid.uuid4()))
        recorder.record(cluster_wide, "Normal", "Seen", "Look", "a namespace")
        recorder.stop()
    [event] = admin.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    assert event["note"].startswith("100% wrong: é")
    assert event["series"]["count"] == 2
    assert event["reportingController"] == "trainer.kubeflow.org/e2e"
    others = admin.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    assert [each["note"] for each in others if each["regarding"].get("uid") == cluster_wide.uid] == ["a namespace"]


async def test_a_kind_that_is_defined_later_should_be_discovered(client: Client) -> None:
    group = f"e2e-{uuid.uuid4().hex[:8]}.example.org"
    things = Resource(group, "v1", "Thing", "things", namespaced=True)
    schema = {"openAPIV3Schema": {"type": "object"}}
    definition = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    discovery = Discovery(client, SystemClock())
    assert await discovery.exists(CONFIGMAPS)
    assert not await discovery.exists(things)
    await client.create(CRDS, "", orjson.dumps(definition))
    try:
        await until(lambda: discovery.exists(things))
        assert await discovery.find(things.gvk) == things
    finally:
        await client.delete(CRDS, ObjectKey("", f"things.{group}"))


async def test_a_token_that_is_rotated_should_be_picked_up(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path
) -> None:
    """As in a pod: the token is in a file, is replaced there, and the old one stops working."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    document = yaml.safe_load(cluster.kubeconfig("admin").read_text())
    path = tmp_path / "token"

    def make_account() -> None:
        admin.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path.write_text(admin.create(f"{accounts}/robot/token", request)["status"]["token"])

    make_account()
    document["users"][0]["user"] = {"tokenFile": str(path)}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    config = load_config(tmp_path / "kubeconfig", None)
    assert config.credentials == TokenFile(path)
    connection = connection_of(config)
    review = orjson.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})

    async def whoami() -> str:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        response = await connection.client.request("POST", path, body=review)
        user: str = orjson.loads(response.body)["status"]["userInfo"]["username"]
        return user

    async def is_refused() -> bool:
        try:
            await whoami()
        except Unauthorized:
            return True
        return False

    robot = f"system:serviceaccount:{namespace}:robot"
    assert await whoami() == robot
    # A token dies with its account, though the server may remember it for a while.
    admin.delete(f"{accounts}/robot")
    make_account()
    for _ in range(5):
        assert await whoami() == robot
    admin.delete(f"{accounts}/robot")
    await until(is_refused)
    make_account()
    assert await whoami() == robot
    await connection.close()
