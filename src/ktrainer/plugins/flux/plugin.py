"""The plugin for runtimes with the policy `flux`.

Departs: a TrainJob without `numNodes` gets the runtime's number of nodes, and the key is random; the original crashes
on the first, and derives the key from the TrainJob's uid, which everybody can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import CONFIG_MAPS, SECRETS
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.component import Component, Write, is_made, new_object
from ktrainer.framework.findings import Findings
from ktrainer.framework.plugin import (
    ComponentBuilderPlugin,
    CustomValidationPlugin,
    EnforceMLPolicyPlugin,
    WatchExtensionPlugin,
)
from ktrainer.framework.podset import NODE
from ktrainer.framework.reader import fetch_surely
from ktrainer.framework.resources import gpu_count_of
from ktrainer.framework.watch import Watch
from ktrainer.kube import fields
from ktrainer.kube.access import Access
from ktrainer.kube.fields import Path
from ktrainer.plugins.flux import names
from ktrainer.plugins.flux.scripts import Cluster, entrypoint_of, init_script_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainingruntime import FluxPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import CurveKeys, Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet
    from ktrainer.kube.jsonvalue import JsonObject

ACCESS: Final = (
    Access(CONFIG_MAPS, ("get", "list", "watch", "create", "patch")),
    # Created once, and read live before that; never changed.
    Access(SECRETS, ("get", "list", "watch", "create")),
)


class Flux(CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin):
    """Installs Flux in the training pods, and runs the training's command in it."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Looks for a Secret that is there already, and makes keys where there is none."""
        self._reader = dependencies.reader
        self._make_keys = dependencies.make_curve_keys

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse words for numbers, and an init container of our name."""
        if _policy(info) is None:
            return Findings()
        findings, path = Findings(), Path("spec.trainer")
        processes = trainer_of(new).num_proc_per_node
        if isinstance(processes, str):
            detail = "must be a number: Flux has no such words"
            findings.errors.append(fields.invalid(path.child("numProcPerNode"), processes, detail))
        pods = _pods(info)
        if pods and pods.init_container(names.INSTALLER):
            detail = f"the runtime must not have an init container {names.INSTALLER}: the name is reserved"
            findings.errors.append(fields.invalid(path.child("initContainers"), names.INSTALLER, detail))
        return findings

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Wrap the command; add volumes, mounts and the init container."""
        pods = _pods(info)
        if _policy(info) is None or pods is None:
            return
        scripts = names.config_map_name_of(trainjob.metadata.name)
        info.command, info.args = [*_BASH, f"{names.CONFIG_PATH}/entrypoint.sh", _program(info)], None
        pods.add_volumes(*_volumes(trainjob.metadata.name))
        pods.add_init_container(
            {
                "name": names.INSTALLER,
                "image": _settings(info, trainjob)[names.VIEW_IMAGE],
                "command": [*_BASH, f"{names.CONFIG_PATH}/init.sh"],
                "volumeMounts": [_mount(names.INSTALL_VOLUME, names.INSTALL_PATH), _read_only(scripts)],
            }
        )
        if container := pods.container(NODE):
            container.add_mounts(
                _mount(names.INSTALL_VOLUME, names.INSTALL_PATH),
                _mount(names.SPACK_VOLUME, names.SPACK_PATH),
                _read_only(scripts),
                _read_only(names.CURVE_VOLUME, names.CURVE_PATH),
                _read_only(names.MEMORY_VOLUME, names.MEMORY_PATH),
            )

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the scripts, and the certificate unless there is one."""
        policy, pods, meta = _policy(info), _pods(info), trainjob.metadata
        if policy is None or pods is None:
            return []
        components = []
        name = names.config_map_name_of(meta.name)
        present = await fetch_surely(self._reader, CONFIG_MAPS, meta.namespace, name)
        if trainjob.spec.suspend or not _is_of_original(present, trainjob):
            cluster = _cluster(info, trainjob, policy, pods)
            config_map = new_object(CONFIG_MAPS, trainjob, name)
            config_map["data"] = {"entrypoint.sh": entrypoint_of(cluster), "init.sh": init_script_of(cluster)}
            components.append(Component(CONFIG_MAPS, config_map))
        name = names.secret_name_of(meta.name)
        if not is_made(await fetch_surely(self._reader, SECRETS, meta.namespace, name), trainjob):
            secret = new_object(SECRETS, trainjob, name)
            secret["stringData"] = {names.CURVE_FILE: _certificate(meta.name, self._make_keys())}
            components.append(Component(SECRETS, secret, Write.CREATE))
        return components

    def watches(self) -> Iterable[Watch]:
        """The objects that we make."""
        yield Watch(CONFIG_MAPS, labelled=True)
        yield Watch(SECRETS, labelled=True)


_BASH = ("/bin/bash",)


def _policy(info: Info) -> FluxPolicy | None:
    return info.ml_policy.flux if info.ml_policy else None


def _pods(info: Info) -> PodSet | None:
    return info.trainer or info.pod_set(NODE)


def _program(info: Info) -> str:
    """What is to run in Flux, as one text: the command, the TrainJob's before the runtime's, and its arguments."""
    container = info.trainer_container
    of_runtime = (container.spec.get("command") if container else None) or []
    return " ".join([*(of_runtime if info.command is None else info.command), *(info.args or ())]).strip()


def _is_of_original(present: JsonObject | None, trainjob: TrainJob) -> bool:
    """Whether these are scripts of the original, which writes no label: the pods that run by them keep them."""
    return present is not None and is_made(present, trainjob) and TRAINJOB_NAME not in _labels(present)


def _labels(obj: JsonObject) -> JsonObject:
    return obj["metadata"].get("labels") or {}


def _settings(info: Info, trainjob: TrainJob) -> dict[str, str]:
    settings = dict(names.DEFAULTS)
    container, env = info.trainer_container, trainer_of(trainjob).env
    for name in settings:
        of_runtime = container.env_value(name) if container else None
        of_job = next((entry.get("value") for entry in env if entry["name"] == name), None)
        settings[name] = of_job or of_runtime or settings[name]
    return settings


def _cluster(info: Info, trainjob: TrainJob, policy: FluxPolicy, pods: PodSet) -> Cluster:
    settings, wanted = _settings(info, trainjob), trainer_of(trainjob).num_proc_per_node
    host, _, subdomain = pods.first_endpoint.partition(".")
    return Cluster(
        hosts=host.removesuffix("-0"),
        domain=f"{subdomain}.{trainjob.metadata.namespace}.svc",
        nodes=pods.count,
        processes=wanted if isinstance(wanted, int) else policy.num_proc_per_node,
        gpus=gpu_count_of(info.node_resources),
        network_device=settings[names.NETWORK_DEVICE],
        queue_policy=settings[names.QUEUE_POLICY],
    )


def _volumes(trainjob: str) -> list[JsonObject]:
    scripts = names.config_map_name_of(trainjob)
    return [
        {"name": names.SPACK_VOLUME, "emptyDir": {}},
        {"name": names.INSTALL_VOLUME, "emptyDir": {}},
        {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
        {"name": names.MEMORY_VOLUME, "emptyDir": {"medium": "Memory"}},
        {"name": names.CURVE_VOLUME, "secret": {"secretName": names.secret_name_of(trainjob), "defaultMode": 0o400}},
    ]


def _mount(volume: str, path: str) -> JsonObject:
    return {"name": volume, "mountPath": path}


def _read_only(volume: str, path: str = names.CONFIG_PATH) -> JsonObject:
    return {"name": volume, "mountPath": path, "readOnly": True}


def _certificate(trainjob: str, keys: CurveKeys) -> str:
    return (
        "# The certificate by which the brokers of one Flux instance know each other\n\n"
        f'metadata\n    name = "{trainjob}"\n'
        f'curve\n    public-key = "{keys.public}"\n    secret-key = "{keys.secret}"\n'
    )
