"""Keeps a copy NAME of each ConfigMap that is annotated with `copier.example/to: NAME`; see examples/README.md."""

import asyncio
import os

import orjson

from ktrainer.client.config import load_config
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.admission import AdmissionRequest, AdmissionResponse, Hook, allowed, denied
from ktrainer.machinery.admissionserver import ServerOptions
from ktrainer.machinery.cabundle import VALIDATING, Configuration
from ktrainer.machinery.controller import ControllerSettings
from ktrainer.machinery.handlers import EnqueueForObject
from ktrainer.machinery.objects import CachedObject
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.pki import PkiPolicy
from ktrainer.machinery.reconcile import Result
from ktrainer.machinery.source import View
from ktrainer.machinery.webhooks import WebhookSettings, add_webhooks

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAME, TO, PORT = "configmap-copier", "copier.example/to", int(os.environ.get("COPIER_PORT", "9443"))


class ConfigMap(CachedObject, gc=False, frozen=True, kw_only=True):
    data: dict[str, str] = {}


async def refuse_loops(request: AdmissionRequest) -> AdmissionResponse:
    target = (orjson.loads(request.object or b"{}")["metadata"].get("annotations") or {}).get(TO)
    return denied(f"metadata.annotations[{TO}]: it would copy itself") if target == request.name else allowed()


async def main() -> None:
    operator = Operator(load_config(), OperatorSettings(NAME, lease_name=os.environ.get("COPIER_LEASE", NAME)))
    configmaps, client = operator.informer(View(CONFIGMAPS, ConfigMap)), operator.connection.client

    async def copy(key: ObjectKey) -> Result:
        source = configmaps.reader.get(key)
        if source is not None and TO in source.metadata.annotations:
            wanted = ObjectKey(key.namespace, source.metadata.annotations[TO])
            present = configmaps.reader.get(wanted)
            if present is None or present.data != source.data:
                owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": key.name, "uid": source.metadata.uid}
                metadata = {"name": wanted.name, "ownerReferences": [owner]}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": source.data}
                await client.apply(CONFIGMAPS, wanted, orjson.dumps(body), field_manager=NAME)
        return Result()

    configmaps.add_handler(EnqueueForObject(operator.controller(ControllerSettings(NAME, workers=4), copy)))
    policy, secret = PkiPolicy(NAME, ("127.0.0.1",)), ObjectKey("default", f"{NAME}-certificates")
    settings = WebhookSettings(secret, [Configuration(VALIDATING, NAME)], policy, ServerOptions("127.0.0.1", PORT))
    add_webhooks(operator, settings, [Hook("/loops", refuse_loops, is_mutating=False)])
    await operator.run()


asyncio.run(main())
