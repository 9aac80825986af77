"""A real API server calls our admission server, with certificates that we made and put into its configurations."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import connect
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.errors import InternalError, Invalid
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed, denied, patched
from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.server import AdmissionServer, ServerOptions
from ktrainer.machinery.certificates.cabundle import MUTATING, VALIDATING, BundleInjector, Configuration
from ktrainer.machinery.certificates.expiry import ExpiryWatch
from ktrainer.machinery.certificates.metrics import CertificateMetrics
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.certificates.rotator import CertificateRotator, RotatorParts
from ktrainer.machinery.certificates.secret import SECRETS, CertificateSecret
from ktrainer.machinery.certificates.serving import ServingCertificate
from ktrainer.machinery.serving.tlsdial import dial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clusters.folder import Folder
    from ktrainer.client.client import Client

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", True)
LABEL = {"admission": "tested"}
ANNOTATION = "test.ktrainer.dev/hook"
SECRET = "webhook-certs"


@dataclass
class Webhook:
    """What the API server of the test calls, and what it was asked."""

    client: Client
    namespace: str
    serving: ServingCertificate
    rotator: CertificateRotator
    asked: list[AdmissionRequest] = field(default_factory=list)

    async def mutate(self, request: AdmissionRequest) -> AdmissionResponse:
        self.asked.append(request)
        changed = orjson.loads(request.object or b"")
        changed["metadata"]["annotations"] = {ANNOTATION: "patched"}
        return patched(request, changed)

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        self.asked.append(request)
        data = orjson.loads(request.object or b"{}").get("data", {})
        match data.get("wish"):
            case "fail":
                raise ValueError("never to be seen")
            case "bad":
                return denied("spec.wish: not granted", code=422, reason="Invalid")
        return allowed(warnings=("be careful", "be\ncareful too") if data.get("wish") == "warning" else ())

    async def create(self, name: str, *, dry_run: bool = False, **data: str) -> dict[str, Any]:
        """Create a ConfigMap that the hooks are asked about."""
        document = orjson.dumps(self.configmap(name, data))
        made: dict[str, Any] = orjson.loads(
            await self.client.create(CONFIGMAPS, self.namespace, document, dry_run=dry_run)
        )
        return made

    def configmap(self, name: str, data: dict[str, str]) -> dict[str, Any]:
        metadata = {"name": name, "labels": LABEL}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def configuration(resource: Resource, namespace: str, url: str) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "test.ktrainer.dev",
                "clientConfig": {"url": url},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "objectSelector": {"matchLabels": LABEL},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                        "operations": ["CREATE", "UPDATE", "DELETE"] if resource is VALIDATING else ["CREATE"],
                    }
                ],
            }
        ],
    }


@pytest.fixture
async def client(cluster: Folder) -> AsyncIterator[Client]:
    config = load_config(cluster.kubeconfig("admin"), None)
    connection = connect(
        config, component="e2e", clock=SystemClock(), registry=CollectorRegistry(), qps=1000, burst=1000
    )
    yield connection.client
    await connection.close()


def rotator_of(client: Client, namespace: str, serving: ServingCertificate) -> CertificateRotator:
    policy = PkiPolicy(f"ca-{namespace}", ("127.0.0.1",))
    configurations = [Configuration(VALIDATING, namespace), Configuration(MUTATING, namespace)]
    clock, metrics = SystemClock(), CertificateMetrics(CollectorRegistry())
    parts = RotatorParts(
        secret=CertificateSecret(client, ObjectKey(namespace, SECRET)),
        injector=BundleInjector(client, configurations, policy.authority_name),
        serving=serving,
        expiry=ExpiryWatch(metrics, lambda not_after: None, clock),
        policy=policy,
        metrics=metrics,
        settle_seconds=1.0,
    )
    return CertificateRotator(parts, clock=clock, server_time=client.server_time, random=Random(0))


@pytest.fixture
async def webhook(client: Client, namespace: str) -> AsyncIterator[Webhook]:
    """An admission server on loopback that the API server trusts."""
    serving = ServingCertificate()
    webhook = Webhook(client, namespace, serving, rotator_of(client, namespace, serving))
    options = ServerOptions(host="127.0.0.1", port=0, drain_seconds=0)
    server = AdmissionServer(serving.context, WebhookMetrics(CollectorRegistry()), options)
    server.register(Hook("/validate", webhook.validate, is_mutating=False))
    server.register(Hook("/mutate", webhook.mutate, is_mutating=True))
    serving_task = asyncio.create_task(server.run())
    port = await server.wait_listening()
    for resource, path in ((VALIDATING, "/validate"), (MUTATING, "/mutate")):
        document = configuration(resource, namespace, f"https://127.0.0.1:{port}{path}")
        await client.create(resource, "", orjson.dumps(document))
    rotating_task = asyncio.create_task(webhook.rotator.run())
    await webhook.rotator.wait_ready()
    await dial("127.0.0.1", port)
    yield webhook
    for resource in (VALIDATING, MUTATING):
        await client.delete(resource, ObjectKey("", namespace))
    rotating_task.cancel()
    server.stop()
    await serving_task
    with contextlib.suppress(asyncio.CancelledError):
        await rotating_task


async def test_an_object_should_be_changed_and_then_judged(webhook: Webhook) -> None:
    made = await webhook.create("good", colour="blue")
    assert made["metadata"]["annotations"] == {ANNOTATION: "patched"}
    first, second = webhook.asked
    assert (first.operation.value, first.name, first.namespace, first.dry_run) == (
        "CREATE",
        "good",
        webhook.namespace,
        False,
    )
    seen = orjson.loads(second.object or b"")["metadata"]["annotations"]
    assert seen == {ANNOTATION: "patched"}, "the validating hook sees what was made of it"
    assert (second.old_object, second.user_info.username) == (None, first.user_info.username)


async def test_a_refusal_should_reach_the_user_in_our_words(webhook: Webhook) -> None:
    with pytest.raises(Invalid, match=r"denied the request: spec\.wish: not granted") as refused:
        await webhook.create("bad", wish="bad")
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


async def test_a_failure_should_refuse_and_keep_its_reason_to_itself(webhook: Webhook) -> None:
    with pytest.raises(InternalError, match="denied the request: the webhook failed: ValueError") as refused:
        await webhook.create("failing", wish="fail")
    assert "never to be seen" not in str(refused.value)


async def test_warnings_should_reach_the_user(webhook: Webhook) -> None:
    path = CONFIGMAPS.path(webhook.namespace)
    body = orjson.dumps(webhook.configmap("warned", {"wish": "warning"}))
    answer = await webhook.client.request("POST", path, body=body)
    assert answer.status == 201
    assert '299 - "be careful"' in answer.headers["Warning"]


async def test_a_dry_run_should_be_judged_and_not_stored(webhook: Webhook) -> None:
    made = await webhook.create("dry", dry_run=True)
    assert made["metadata"]["annotations"] == {ANNOTATION: "patched"}
    assert [request.dry_run for request in webhook.asked] == [True, True]
    await webhook.create("dry")


async def test_updates_and_deletions_should_be_asked_about_with_the_former_object(webhook: Webhook) -> None:
    made = await webhook.create("changing", a="a")
    key = ObjectKey(webhook.namespace, "changing")
    await webhook.client.update(CONFIGMAPS, key, orjson.dumps({**made, "data": {"a": "b"}}))
    await webhook.client.delete(CONFIGMAPS, key)
    update, deletion = webhook.asked[2:]
    assert orjson.loads(update.old_object or b"")["data"] == {"a": "a"}
    assert (deletion.operation.value, deletion.object) == ("DELETE", None)
    assert orjson.loads(deletion.old_object or b"")["data"] == {"a": "b"}


async def test_damage_should_be_repaired_without_a_caller_noticing(webhook: Webhook) -> None:
    key = ObjectKey(webhook.namespace, SECRET)
    former = await webhook.client.get(SECRETS, key)
    await webhook.client.patch(SECRETS, key, b'{"data":{"ca.crt":"Z2FyYmFnZQ=="}}', PatchType.MERGE)
    webhook.rotator.wake()
    for number in range(30):
        await webhook.create(f"while-{number}")
        await asyncio.sleep(0.1)
    renewed = await webhook.client.get(SECRETS, key)
    assert orjson.loads(renewed)["data"]["tls.crt"] != orjson.loads(former)["data"]["tls.crt"]


async def test_a_restart_should_change_nothing(webhook: Webhook, client: Client) -> None:
    async def versions() -> list[str]:
        keys = [(SECRETS, ObjectKey(webhook.namespace, SECRET))]
        keys += [(resource, ObjectKey("", webhook.namespace)) for resource in (VALIDATING, MUTATING)]
        documents = [orjson.loads(await client.get(resource, key)) for resource, key in keys]
        return [document["metadata"]["resourceVersion"] for document in documents]

    before = await versions()
    serving = ServingCertificate()
    rotator = rotator_of(client, webhook.namespace, serving)
    task = asyncio.create_task(rotator.run())
    async with asyncio.timeout(3):
        await rotator.wait_ready()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await versions() == before


async def test_a_patch_that_tests_in_vain_should_be_refused_as_invalid(webhook: Webhook) -> None:
    operations = [{"op": "test", "path": "/webhooks/0/name", "value": "another"}]
    with pytest.raises(Invalid, match="rejected our request"):
        await webhook.client.patch(
            VALIDATING, ObjectKey("", webhook.namespace), orjson.dumps(operations), PatchType.JSON
        )
