"""Keeps a copy NAME of each ConfigMap that is annotated with `copier.example/to: NAME`; see examples/README.md."""

import asyncio
import os

import orjson

from ktrainer.client.config.config import load_config
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed, denied
from ktrainer.machinery.admission.server import ServerOptions
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.certificates.cabundle import VALIDATING, Configuration
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.control.controller import ControllerSettings
from ktrainer.machinery.control.handlers import EnqueueForObject
from ktrainer.machinery.control.reconcile import Result
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.servingcertificates import CertificateSettings, add_certificates
from ktrainer.machinery.webhooks import add_webhooks

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
            if (present := configmaps.reader.get(wanted)) is None or present.data != source.data:
                owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": key.name, "uid": source.metadata.uid}
                metadata = {"name": wanted.name, "ownerReferences": [owner]}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": source.data}
                await client.apply(CONFIGMAPS, wanted, orjson.dumps(body), field_manager=NAME)
        return Result()

    configmaps.add_handler(EnqueueForObject(operator.controller(ControllerSettings(NAME, workers=4), copy)))
    policy, secret = PkiPolicy(NAME, ("127.0.0.1",)), ObjectKey("default", f"{NAME}-certificates")
    certificates = add_certificates(operator, CertificateSettings(secret, [Configuration(VALIDATING, NAME)], policy))
    hooks = [Hook("/loops", refuse_loops, is_mutating=False)]
    add_webhooks(operator, certificates, hooks, ServerOptions("127.0.0.1", PORT))
    await operator.run()


asyncio.run(main())
