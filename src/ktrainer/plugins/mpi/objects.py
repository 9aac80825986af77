"""The objects that an MPI job needs beside its JobSet, and the volumes that bring them into its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import CONFIG_MAPS, SECRETS
from ktrainer.framework.component import Component, Write, new_object
from ktrainer.plugins.mpi.implementation import HOSTFILE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import SshKeys
    from ktrainer.kube.jsonvalue import JsonObject

SSH_VOLUME: Final = "mpi-ssh-auth"
HOSTFILE_VOLUME: Final = "mpi-hostfile"

_PRIVATE: Final = "ssh-privatekey"
_PUBLIC: Final = "ssh-publickey"


def secret_name_of(trainjob: str) -> str:
    """The name of the Secret with the SSH keys."""
    return f"{trainjob}-mpi-ssh-auth"


def hostfile_name_of(trainjob: str) -> str:
    """The name of the ConfigMap with the hostfile."""
    return f"{trainjob}-mpi-hostfile"


def build_secret(trainjob: TrainJob, keys: SshKeys) -> Component:
    """The SSH keys: made once, since a launcher and its nodes must have the same."""
    secret = new_object(SECRETS, trainjob, secret_name_of(trainjob.metadata.name))
    secret["type"] = "kubernetes.io/ssh-auth"
    secret["immutable"] = True
    secret["stringData"] = {_PRIVATE: keys.private, _PUBLIC: keys.public}
    return Component(SECRETS, secret, Write.CREATE)


def build_hostfile(trainjob: TrainJob, lines: Iterable[str]) -> Component:
    """The list of hosts."""
    config_map = new_object(CONFIG_MAPS, trainjob, hostfile_name_of(trainjob.metadata.name))
    config_map["data"] = {HOSTFILE: "".join(lines)}
    return Component(CONFIG_MAPS, config_map)


def ssh_volume(trainjob: str) -> JsonObject:
    """The keys as files that an SSH client and a server look for."""
    items = [
        {"key": _PRIVATE, "path": "id_rsa", "mode": 0o640},
        {"key": _PUBLIC, "path": "id_rsa.pub", "mode": 0o644},
        {"key": _PUBLIC, "path": "authorized_keys", "mode": 0o644},
    ]
    return {
        "name": SSH_VOLUME,
        "secret": {"secretName": secret_name_of(trainjob), "defaultMode": 0o400, "items": items},
    }


def hostfile_volume(trainjob: str) -> JsonObject:
    """The list of hosts as a file."""
    items = [{"key": HOSTFILE, "path": HOSTFILE, "mode": 0o444}]
    return {"name": HOSTFILE_VOLUME, "configMap": {"name": hostfile_name_of(trainjob), "items": items}}
