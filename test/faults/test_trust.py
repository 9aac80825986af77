"""What each side knows the other by changes while requests are under way: tokens, and the server's authority."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from clusters.api import Api, Object, Refused
from clusters.audit import events_of
from clusters.folder import Folder
from ktrainer.client.config.config import ConnectionConfig, Material, TlsConfig
from ktrainer.client.config.incluster import load_service_account
from ktrainer.kube.identity import ObjectKey
from support.faultproxy.proxy import FaultProxy
from support.figures import Figures, scaled
from support.observer import CONFIGMAPS, Observer, configmap, observing, until

WORKERS = 8
RBAC = "rbac.authorization.k8s.io"


@dataclass
class Outcome:
    """What became of requests."""

    successes: int = 0
    failures: list[str] = field(default_factory=list)


@asynccontextmanager
async def requesting(observer: Observer, namespace: str) -> AsyncIterator[Outcome]:
    """Read one object over and over on several connections, as workers do."""
    outcome = Outcome()

    async def work() -> None:
        while True:
            try:
                await observer.connection.client.get(CONFIGMAPS, ObjectKey(namespace, "one"))
                outcome.successes += 1
            except Exception as error:
                outcome.failures.append(repr(error))
            await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(work()) for _ in range(WORKERS)]
    try:
        yield outcome
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class ServiceAccount:
    """A service account with the files that a pod would have; a token of it is good as long as its Secret exists."""

    def __init__(self, admin: Api, namespace: str, folder: Path) -> None:
        self._admin = admin
        self._path = f"/api/v1/namespaces/{namespace}"
        self._folder = folder
        admin.create(f"{self._path}/serviceaccounts", _named("ServiceAccount", "reader"))
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
        rbac = f"/apis/{RBAC}/v1/namespaces/{namespace}"
        admin.create(f"{rbac}/roles", _named("Role", "reader", f"{RBAC}/v1", rules=[rule]))
        role = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
        subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
        binding = _named("RoleBinding", "reader", f"{RBAC}/v1", roleRef=role, subjects=[subject])
        admin.create(f"{rbac}/rolebindings", binding)
        (folder / "namespace").write_text(namespace)

    def issue(self, name: str) -> str:
        """Put a new token into the place of the old, as a kubelet does, and return it."""
        secret = self._admin.create(f"{self._path}/secrets", _named("Secret", name))
        bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound, "expirationSeconds": 3600},
        }
        answer = self._admin.create(f"{self._path}/serviceaccounts/reader/token", request)
        token: str = answer["status"]["token"]
        _replace(self._folder / "token", token.encode())
        return token

    def revoke(self, name: str) -> None:
        """Make a token worthless."""
        self._admin.delete(f"{self._path}/secrets/{name}")

    async def until_worthless(self, token: str, document: Object) -> None:
        """Wait until the server refuses a token; it remembers for some seconds that a token was good."""
        user = {"name": document["users"][0]["name"], "user": {"token": token}}
        kubeconfig = self._folder / "old.yaml"
        kubeconfig.write_text(yaml.safe_dump({**document, "users": [user]}))
        with closing(Api(kubeconfig)) as api:
            for _ in range(300):
                try:
                    await asyncio.to_thread(api.get, f"{self._path}/configmaps/one")
                except Refused as refused:
                    if refused.code == 401:
                        return
                    raise
                await asyncio.sleep(0.1)
        raise AssertionError("the token is still good")


async def test_T38_a_token_that_is_replaced_and_revoked_should_not_be_missed(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    document: Object = yaml.safe_load(cluster.kubeconfig("admin").read_text())
    await asyncio.to_thread(admin.create, f"/api/v1/namespaces/{namespace}/configmaps", configmap("one"))
    account = await asyncio.to_thread(ServiceAccount, admin, namespace, tmp_path)
    token = await asyncio.to_thread(account.issue, "token-0")
    began_at, rotations = datetime.now(UTC), scaled(1, 5)
    async with observing(_in_cluster(document, tmp_path), namespace) as observer:
        async with requesting(observer, namespace) as outcome:
            for number in range(rotations):
                old, token = token, await asyncio.to_thread(account.issue, f"token-{number + 1}")
                await asyncio.to_thread(account.revoke, f"token-{number}")
                await account.until_worthless(old, document)
                successes = outcome.successes
                await until(lambda: outcome.successes > successes + 2 * WORKERS, 10)  # noqa: B023 - called at once
        # A watch that begins now is known by the new token, too.
        since = observer.informer.store.resource_version
        watch = observer.connection.client.watch(
            CONFIGMAPS, namespace=namespace, resource_version=since, timeout_seconds=5, idle_seconds=5
        )
        async with watch:
            pass
    unauthorized = await asyncio.to_thread(_unauthorized, cluster, began_at)
    figures.at_least("requests answered", outcome.successes, 20 * WORKERS)
    figures.exactly("requests that failed for a revoked token", len(outcome.failures), 0)
    figures.at_least("requests with a revoked token", unauthorized, 1)
    figures.at_most("requests with a revoked token, mean per connection", unauthorized / rotations / WORKERS, 1)


async def test_T38_a_new_authority_of_the_server_should_be_picked_up(
    proxy: FaultProxy, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await asyncio.to_thread(admin.create, path, configmap("one"))
    authorities = tmp_path / "ca.crt"
    authorities.write_bytes(proxy.authority)
    server = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    config = ConnectionConfig(server, TlsConfig(authorities=Material(path=authorities)))
    async with observing(config, namespace) as observer:
        async with requesting(observer, namespace) as outcome:
            await until(lambda: outcome.successes > WORKERS)
            _replace(authorities, await asyncio.to_thread(proxy.renew_certificate))
            proxy.cut_all()
            seconds = await _until_seen(observer, admin, path, "two")
            successes = outcome.successes
            await until(lambda: outcome.successes > successes + 2 * WORKERS, 10)
        figures.exactly("requests that failed for a new authority", len(outcome.failures), 0)
        figures.at_most("new authority picked up by a watch", seconds, 5, "s")
        # Now the file comes late.
        authority = await asyncio.to_thread(proxy.renew_certificate)
        proxy.cut_all()
        await until(lambda: observer.informer.last_error is not None, 10)
        # So late that several tries have failed meanwhile, and the pauses between them have grown.
        await asyncio.sleep(2)
        _replace(authorities, authority)
        seconds = await _until_seen(observer, admin, path, "three")
        figures.at_most("new authority picked up when its file came late", seconds, 5, "s")


async def _until_seen(observer: Observer, admin: Api, path: str, name: str) -> float:
    began_at = time.monotonic()
    await asyncio.to_thread(admin.create, path, configmap(name))
    await until(lambda: observer.data_of(name) is not None, 30)
    return time.monotonic() - began_at


def _in_cluster(document: Object, folder: Path) -> ConnectionConfig:
    cluster = document["clusters"][0]["cluster"]
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    address = urlsplit(cluster["server"])
    environ = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    return load_service_account(folder, environ)


def _unauthorized(cluster: Folder, since: datetime) -> int:
    """Return how many requests of the observer the server did not know the sender of."""
    return sum(
        event.get("responseStatus", {}).get("code") == 401
        and event.get("userAgent", "").endswith("/observer")
        and datetime.fromisoformat(event["requestReceivedTimestamp"]) >= since
        for event in events_of(cluster.file("audit", "audit.log"))
    )


def _named(kind: str, name: str, api_version: str = "v1", **fields: object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _replace(path: Path, content: bytes) -> None:
    """Exchange a file at once, so that nobody sees half of it."""
    scratch = path.with_suffix(".new")
    scratch.write_bytes(content)
    scratch.replace(path)
