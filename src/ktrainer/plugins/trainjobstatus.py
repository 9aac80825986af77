"""Lets training pods report their progress: an address, a token for it, and the certificate to trust.

`ktrainer.statusserver` is the other side. The plugin is registered where the gate TrainJobStatus is open.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import API_VERSION, CONFIG_MAPS, SECRETS
from ktrainer.framework.component import Component, new_object
from ktrainer.framework.container import env_var
from ktrainer.framework.plugin import ComponentBuilderPlugin, EnforceMLPolicyPlugin

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.kube.meta import ObjectMeta

URL: Final = "KUBEFLOW_TRAINER_SERVER_URL"
CA_CERT: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable

MOUNT_PATH: Final = "/var/run/secrets/kubeflow/trainer"
VOLUME: Final = "kubeflow-trainer-token"
TOKEN_SECONDS: Final = 3600
"""How long a token is good; the kubelet renews it in time."""
CA_KEY: Final = "ca.crt"


def status_path_of(meta: ObjectMeta) -> str:
    """The path under which a TrainJob's progress is reported."""
    return f"/apis/{API_VERSION}/namespaces/{meta.namespace}/trainjobs/{meta.name}/status"


def audience_of(meta: ObjectMeta) -> str:
    """The audience of the tokens that are good for one TrainJob's progress."""
    return f"{API_VERSION}/namespaces/{meta.namespace}/trainjobs/{meta.name}/status"


def config_map_name_of(meta: ObjectMeta) -> str:
    """The ConfigMap that holds the certificate for a TrainJob's pods."""
    return f"{meta.name}-tls-config"


class TrainJobStatus(EnforceMLPolicyPlugin, ComponentBuilderPlugin):
    """Equips all containers of the trainer's job."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Reads the certificate authority out of the webhook's Secret."""
        self._reader = dependencies.reader
        self._namespace = dependencies.namespace
        self._secret = dependencies.certificate_secret
        self._server = f"https://{dependencies.service}.{dependencies.namespace}.svc:{dependencies.status_port}"

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Add variables, volume and mounts."""
        if info.trainer is None:
            return
        for container in info.trainer.containers:
            container.set_env(
                env_var(URL, self._server + status_path_of(trainjob.metadata)),
                env_var(CA_CERT, f"{MOUNT_PATH}/{CA_KEY}"),
                env_var(TOKEN, f"{MOUNT_PATH}/token"),
            )
            container.add_mounts({"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True})
        info.trainer.add_volumes(_volume(trainjob.metadata))

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the ConfigMap with the certificate; raises LookupError while the webhook's Secret has none."""
        secret = await self._reader.fetch(SECRETS, self._namespace, self._secret)
        encoded = ((secret or {}).get("data") or {}).get(CA_KEY)
        if not encoded:
            raise LookupError(f"the Secret {self._namespace}/{self._secret} has no {CA_KEY} yet")
        config_map = new_object(CONFIG_MAPS, trainjob, config_map_name_of(trainjob.metadata))
        config_map["data"] = {CA_KEY: base64.b64decode(encoded).decode()}
        return [Component(CONFIG_MAPS, config_map)]


def _volume(meta: ObjectMeta) -> JsonObject:
    token = {"audience": audience_of(meta), "expirationSeconds": TOKEN_SECONDS, "path": "token"}
    certificate = {"name": config_map_name_of(meta), "items": [{"key": CA_KEY, "path": CA_KEY}]}
    return {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": certificate}]}}
