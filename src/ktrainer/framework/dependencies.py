"""What plugins get from outside: a look at the cluster, the makers of keys, and where the manager is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject


class Reader(Protocol):
    """Reads objects, from a cache where there is one."""

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """The object, fresh and the caller's to change; none where there is none.

        `live` goes past the caches. Raises whatever the client raises when the API server cannot be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class SshKeys:
    """A pair of keys for SSH."""

    private: str
    """PEM, of the type EC PRIVATE KEY."""
    public: str
    """One line of an authorized_keys file."""


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """A pair of keys for ZeroMQ's CURVE, each in the spelling Z85."""

    public: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the factory of a plugin is handed."""

    reader: Reader
    make_ssh_keys: Callable[[], SshKeys]
    make_curve_keys: Callable[[], CurveKeys]
    namespace: str = "kubeflow-system"
    """The namespace of the manager."""
    service: str = "kubeflow-trainer-controller-manager"
    """The Service in front of the manager."""
    status_port: int = 10443
    """The port of that Service which takes reports of progress."""
    certificate_secret: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of a Secret
    """The Secret with the certificate of that Service, and with its authority's."""


async def find(reader: Reader, resource: Resource, namespace: str, name: str) -> JsonObject | None:
    """Fetch an object that must not be missed: what no cache has, the API server is asked for."""
    cached = await reader.fetch(resource, namespace, name)
    return await reader.fetch(resource, namespace, name, live=True) if cached is None else cached
