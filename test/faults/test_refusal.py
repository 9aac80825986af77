"""A server that refuses one informer: its rights are taken away, or its kind is not installed."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from clusters.kubeconfig import IDENTITIES
from ktrainer.kube.identity import Resource
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.serving.health import Unhealthy
from ktrainer.machinery.serving.selfchecks import check_synced
from support.faultproxy.proxy import FaultProxy
from support.figures import Figures, scaled
from support.observer import ConfigMap, Observer, configmap, observing, until

TRAINER = IDENTITIES["trainer"][0]
RBAC = "rbac.authorization.k8s.io"
GROUP = "faults.example.com"
GADGETS = Resource(GROUP, "v1", "Gadget", "gadgets", namespaced=True)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MINUTE = 60.0


@pytest.fixture
def limited_proxy(cluster: Folder, tmp_path: Path) -> Iterator[FaultProxy]:
    """A way to the API server as somebody who may do nothing but what the test allows."""
    with FaultProxy(cluster.kubeconfig("trainer"), tmp_path) as running:
        yield running


@pytest.fixture
def other_namespace(admin: Api, namespace: str) -> Iterator[str]:
    name = f"{namespace}-other"
    admin.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def no_gadgets(admin: Api) -> Iterator[None]:
    """The kind is not there, neither before nor after."""
    yield
    _succeeds(lambda: admin.delete(f"{CRDS}/gadgets.{GROUP}"), 404)


async def test_T37_an_informer_whose_rights_are_taken_away_should_wait_and_heal(
    limited_proxy: FaultProxy, admin: Api, namespace: str, other_namespace: str, figures: Figures
) -> None:
    proxy = limited_proxy
    for each in (namespace, other_namespace):
        await asyncio.to_thread(_allow, admin, each)
    async with observing(proxy.kubeconfig, namespace, other_namespace) as observer:
        informer, other = observer.informers
        await asyncio.to_thread(admin.delete, _binding(namespace))
        await _until_allowed(admin, namespace, is_allowed=False)
        since, revoked_at = len(proxy.seen), time.monotonic()
        proxy.cut_all()
        await until(lambda: informer.last_error is not None, 10)
        assert "Forbidden" in str(informer.last_error)
        figures.exactly("gauge of the refusal", _refused(observer, "forbidden"), 1)
        for each in (namespace, other_namespace):
            await asyncio.to_thread(admin.create, f"/api/v1/namespaces/{each}/configmaps", configmap("meanwhile"))
        seconds = await until(lambda: len(other.store) == 1, 10)
        figures.at_most("change seen meanwhile by an informer with rights", seconds, 2, "s")
        await asyncio.sleep(scaled(15, 120) - (time.monotonic() - revoked_at))
        times = [each.at for each in proxy.seen[since:] if f"/{namespace}/" in each.request.path]
        # The server hangs up on those who are silent for so long.
        admin.close()
        await asyncio.to_thread(_allow, admin, namespace)
        await _until_allowed(admin, namespace, is_allowed=True)
        healed = await until(lambda: observer.data_of("meanwhile") is not None, 70)
        await until(lambda: informer.last_error is None and not _refused(observer, "forbidden"), 5)
    figures.at_least("requests while rights were gone", len(times), 3)
    figures.at_most("requests in any minute", _most_in_a_minute(times), 10)
    figures.at_most("healed after rights were back", healed, 65, "s")


@pytest.mark.usefixtures("no_gadgets")
async def test_T37_a_kind_that_comes_and_goes_should_be_seen_and_survived(
    proxy: FaultProxy, admin: Api, namespace: str, figures: Figures
) -> None:
    view = View(GADGETS, ConfigMap, namespace=namespace)
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/gadgets"
    async with observing(proxy.kubeconfig, views=[view], synced=False) as observer:
        began_at = time.monotonic()
        await until(lambda: observer.informer.is_absent)
        with pytest.raises(
            Unhealthy,
            match=r"gadgets.faults.example.com .* has not synced: the server does not know the kind",
        ):
            check_synced(observer.cache)
        figures.exactly("gauge of a kind that is missing", _refused(observer, "not_found"), 1)
        await asyncio.sleep(scaled(10, 60) - (time.monotonic() - began_at))
        await asyncio.to_thread(_install, admin, path)
        seconds = await until(lambda: observer.informer.has_synced, 15)
        figures.at_most("kind seen after it was installed", seconds, 12, "s")
        await _see_gadget(observer, admin, path, "one")
        # Its objects go with it, and the server ends the watch.
        await asyncio.to_thread(admin.delete, f"{CRDS}/gadgets.{GROUP}")
        await until(lambda: observer.informer.is_absent, 30)
        figures.exactly("gauge of a kind that was removed", _refused(observer, "not_found"), 1)
        await asyncio.to_thread(_install, admin, path)
        seconds = await _see_gadget(observer, admin, path, "two")
        figures.at_most("kind seen after it was installed again", seconds, 12, "s")
        figures.exactly("objects told to be gone with their kind", len(observer.log.deletes), 1)
        assert set(observer.state()) == {"two"}
        assert _refused(observer, "not_found") == 0
    times = [each.at for each in proxy.seen if each.request.path == path]
    figures.at_most("requests for a kind that comes and goes, in any minute", _most_in_a_minute(times), 10)


def _refused(observer: Observer, reason: str) -> float:
    labels = {"name": observer.informer.view.name, "reason": reason}
    return observer.registry.get_sample_value("reflector_refused", labels) or 0.0


def _most_in_a_minute(times: list[float]) -> int:
    return max(sum(first <= each < first + MINUTE for each in times) for first in times)


def _binding(namespace: str) -> str:
    return f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings/reads-configmaps"


def _allow(admin: Api, namespace: str) -> None:
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    metadata = {"name": "reads-configmaps"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reads-configmaps"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": TRAINER}],
    }
    admin.apply(f"{path}/roles/reads-configmaps", role)
    admin.apply(_binding(namespace), binding)


async def _until_allowed(admin: Api, namespace: str, *, is_allowed: bool) -> None:
    """Wait until the server's authorizer has heard of a change."""
    attributes = {"namespace": namespace, "verb": "watch", "resource": "configmaps"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": TRAINER, "resourceAttributes": attributes},
    }
    for _ in range(200):
        answer = await asyncio.to_thread(admin.create, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if answer["status"]["allowed"] == is_allowed:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the authorizer has not heard of the change")


def _install(admin: Api, path: str) -> None:
    """Install the kind, and wait until the server knows it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    pause = threading.Event()
    for _ in range(200):
        # It is in the way of itself while its predecessor is being deleted, and its storage takes a moment.
        _succeeds(lambda: admin.create(CRDS, crd), 409)
        if _succeeds(lambda: admin.get(path), 404, 429, 503):
            return
        pause.wait(0.1)
    raise AssertionError("the server does not know the kind")


def _succeeds(call: Callable[[], Object], *codes: int) -> bool:
    """Return whether a call succeeds or is refused with one of these codes."""
    try:
        call()
    except Refused as refused:
        if refused.code not in codes:
            raise
        return False
    return True


async def _see_gadget(observer: Observer, admin: Api, path: str, name: str) -> float:
    """Make an object and return how long it took to be seen."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}}
    await asyncio.to_thread(admin.create, path, body)
    return await until(lambda: name in observer.state(), 30)
