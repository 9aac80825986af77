"""Lets training pods report their progress: an address, a token for it, and the certificate to trust.

`ktrainer.statusserver` is the other side. The plugin is registered where the gate TrainJobStatus is open.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from ktrainer.api.progress import audience_of, status_path_of
from ktrainer.api.resources import CONFIG_MAPS, SECRETS
from ktrainer.framework.component import Component, new_object
from ktrainer.framework.container import env_var
from ktrainer.framework.plugin import ComponentBuilderPlugin, EnforceMLPolicyPlugin, WatchExtensionPlugin
from ktrainer.framework.watch import Concerns, Watch
from ktrainer.kube.access import Access
from ktrainer.kube.identity import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.kube.meta import ObjectMeta

ACCESS: Final = (
    Access(CONFIG_MAPS, ("create", "patch")),
    Access(SECRETS, ("list", "watch"), names=("kubeflow-trainer-webhook-cert",), is_own=True),
)

URL: Final = "KUBEFLOW_TRAINER_SERVER_URL"
CA_CERT: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable

MOUNT_PATH: Final = "/var/run/secrets/kubeflow/trainer"
VOLUME: Final = "kubeflow-trainer-token"
TOKEN_SECONDS: Final = 3600
"""How long a token is good; the kubelet renews it in time."""
CA_KEY: Final = "ca.crt"
FORMER_CA_KEY: Final = "ca-prev.crt"
"""In the webhook's Secret: the authorities of before, whose certificates some replicas may still serve."""


def config_map_name_of(meta: ObjectMeta) -> str:
    """The ConfigMap that holds the certificate for a TrainJob's pods."""
    return f"{meta.name}-tls-config"


class TrainJobStatusReporting(EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin):
    """Equips all containers of the trainer's job."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Reads the certificate authority out of the webhook's Secret."""
        self._reader = dependencies.reader
        self._secret = ObjectKey(dependencies.namespace, dependencies.certificate_secret)
        self._server = f"https://{dependencies.service}.{dependencies.namespace}.svc:{dependencies.status_port}"

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Add variables, volume and mounts."""
        if info.trainer is None:
            return
        for container in info.trainer.containers:
            container.set_env(
                env_var(URL, self._server + status_path_of(trainjob.metadata.key)),
                env_var(CA_CERT, f"{MOUNT_PATH}/{CA_KEY}"),
                env_var(TOKEN, f"{MOUNT_PATH}/token"),
            )
            container.add_mounts({"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True})
        info.trainer.add_volumes(_volume(trainjob.metadata))

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the ConfigMap with the certificates; raises LookupError while the webhook's Secret has none."""
        secret = await self._reader.fetch(SECRETS, *self._secret)
        bundle = _bundle_of(secret or {})
        if not bundle:
            raise LookupError(f"the Secret {self._secret} has no {CA_KEY} yet")
        config_map = new_object(CONFIG_MAPS, trainjob, config_map_name_of(trainjob.metadata))
        config_map["data"] = {CA_KEY: bundle}
        return [Component(CONFIG_MAPS, config_map)]

    def watches(self) -> Iterable[Watch]:
        """The webhook's Secret: pods that run must learn of a new authority before it issues what they meet."""
        yield Watch(SECRETS, Concerns.UNFINISHED, key=self._secret)


def _bundle_of(secret: JsonObject) -> str:
    """The certificates of the authority and of those before it, which some replica may still use; empty without it."""
    data = secret.get("data") or {}
    current, former = (base64.b64decode(data.get(key) or "").decode() for key in (CA_KEY, FORMER_CA_KEY))
    return current + ("" if current.endswith("\n") else "\n") + former if current and former else current


def _volume(meta: ObjectMeta) -> JsonObject:
    token = {"audience": audience_of(meta.key), "expirationSeconds": TOKEN_SECONDS, "path": "token"}
    certificate = {"name": config_map_name_of(meta), "items": [{"key": CA_KEY, "path": CA_KEY}]}
    return {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": certificate}]}}
