"""The Secret through which replicas share their certificates: always read live, and only written if nobody else was.

Whatever else is in the Secret stays there.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import orjson
import structlog

from ktrainer.kube.errors import NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.certificates.rotation import Material

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

_log = structlog.get_logger(__name__)

SECRETS = Resource("", "v1", "Secret", "secrets", True)


class SecretClient(Protocol):
    """What is needed of an API server here."""

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        """Return an object as it is now."""
        ...

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object."""
        ...

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        """Replace an object, if its resourceVersion is still the current one."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """The Secret as it was read."""

    document: JsonObject | None
    """None where there is no Secret."""
    material: Material


class CertificateSecret:
    """One Secret of that kind."""

    def __init__(self, client: SecretClient, key: ObjectKey) -> None:
        self._client = client
        self._key = key

    async def read(self) -> Stored:
        """Read the Secret; one that does not exist is empty."""
        try:
            document: JsonObject = orjson.loads(await self._client.get(SECRETS, self._key))
        except NotFound:
            return Stored(None, Material.of({}))
        return Stored(document, Material.of(_data_of(document)))

    async def write(self, stored: Stored, material: Material) -> None:
        """Replace what was read; raises Conflict or AlreadyExists when another writer came first."""
        encoded = {key: base64.b64encode(value).decode() for key, value in material.data().items()}
        if stored.document is None:
            document = {
                "apiVersion": SECRETS.api_version,
                "kind": SECRETS.kind,
                "metadata": {"namespace": self._key.namespace, "name": self._key.name},
                "type": "Opaque",
                "data": encoded,
            }
            await self._client.create(SECRETS, self._key.namespace, orjson.dumps(document))
        else:
            data = {**(stored.document.get("data") or {}), **encoded}
            await self._client.update(SECRETS, self._key, orjson.dumps({**stored.document, "data": data}))


def _data_of(document: JsonObject) -> dict[str, bytes]:
    data = {}
    for key, value in (document.get("data") or {}).items():
        try:
            data[key] = base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            _log.warning("value in the Secret is not base64", key=key)
    return data
