"""What plugins get from outside: a look at the cluster, the configuration, and the makers of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ktrainer.api.configuration import Configuration

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
    configuration: Configuration = field(default_factory=Configuration)
    namespace: str = "kubeflow-system"
    """The namespace of the manager."""


async def find(reader: Reader, resource: Resource, namespace: str, name: str) -> JsonObject | None:
    """Fetch an object that must not be missed: what no cache has, the API server is asked for."""
    cached = await reader.fetch(resource, namespace, name)
    return await reader.fetch(resource, namespace, name, live=True) if cached is None else cached
