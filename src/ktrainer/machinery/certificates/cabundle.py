"""Which authorities API servers trust when they call us: the `caBundle` of webhook configurations.

Ours are added next to those of ours that are already there, and all others are replaced. A patch goes out only when
something is missing or foreign, and only takes effect if what it is based on is still so. Configurations that do not
exist are passed over: they may come later.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import orjson
import structlog

from ktrainer.client.patchtype import PatchType
from ktrainer.kube.errors import ApiError, Conflict, Invalid, NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.kube.timestamp import parse_time
from ktrainer.machinery.certificates.pki import subject_of
from ktrainer.machinery.certificates.rotation import render
from ktrainer.machinery.certificates.validity import certificates_of, is_authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography import x509

    from ktrainer.kube.jsonvalue import JsonObject

_log = structlog.get_logger(__name__)

VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)

MAX_AUTHORITIES = 8
"""Authorities in a bundle, apart from those that must be there."""

TRIES = 3
"""How often a patch is built anew because somebody else changed the configuration meanwhile."""


class ConfigurationClient(Protocol):
    """What is needed of an API server here."""

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        """Return an object as it is now."""
        ...

    async def patch(self, resource: Resource, key: ObjectKey, body: bytes, patch_type: PatchType) -> bytes:
        """Change an object."""
        ...


@dataclass(frozen=True, slots=True)
class Configuration:
    """One webhook configuration that is about us."""

    resource: Resource
    name: str


@dataclass(frozen=True, slots=True)
class Injection:
    """What came of an injection."""

    is_complete: bool
    """Whether every configuration that exists has the authorities now."""
    has_written: bool
    """Whether any of them lacked them before."""
    changed_at: datetime | None = None
    """When the last of them was changed for the last time; none where the server does not tell."""


class BundleInjector:
    """Keeps the authorities in a set of configurations."""

    def __init__(
        self, client: ConfigurationClient, configurations: Sequence[Configuration], authority_name: str
    ) -> None:
        self._client = client
        self._configurations = configurations
        self._authority_name = authority_name

    async def inject(self, authorities: Iterable[bytes], now: datetime) -> Injection:
        """See to it that all configurations trust these authorities; trouble with one does not stop the others."""
        own = [each for pem in authorities for each in certificates_of(pem) if each.not_valid_after_utc > now]
        is_complete, has_written, changes = True, False, list[datetime | None]()
        for configuration in self._configurations:
            try:
                document, is_written = await self._inject(configuration, own, now)
                has_written |= is_written
                changes.append(changed_at(document))
            except NotFound:
                _log.debug("webhook configuration does not exist yet", configuration=configuration.name)
            except ApiError as error:
                _log.warning(
                    "authority not put into webhook configuration", configuration=configuration.name, error=str(error)
                )
                is_complete = False
        known = [each for each in changes if each is not None]
        return Injection(is_complete, has_written, max(known) if known and len(known) == len(changes) else None)

    async def _inject(
        self, configuration: Configuration, own: list[x509.Certificate], now: datetime
    ) -> tuple[JsonObject, bool]:
        """Return the configuration as it was, and whether it had to be changed."""
        for _ in range(TRIES - 1):
            try:
                return await self._try(configuration, own, now)
            except (Conflict, Invalid):
                # A test in the patch failed: it was built on what is no longer so.
                continue
        return await self._try(configuration, own, now)

    async def _try(
        self, configuration: Configuration, own: list[x509.Certificate], now: datetime
    ) -> tuple[JsonObject, bool]:
        key = ObjectKey("", configuration.name)
        document: JsonObject = orjson.loads(await self._client.get(configuration.resource, key))
        operations = build_patch(document, own, self._authority_name, now)
        if operations:
            await self._client.patch(configuration.resource, key, orjson.dumps(operations), PatchType.JSON)
            _log.info("authority put into webhook configuration", configuration=configuration.name)
        return document, bool(operations)


def changed_at(document: JsonObject) -> datetime | None:
    """When an object was changed for the last time, by the server's own notes of who manages its fields."""
    try:
        times = [
            parse_time(entry["time"]) for entry in document["metadata"].get("managedFields") or () if "time" in entry
        ]
    except ValueError:
        return None
    return max(times, default=None)


def build_patch(
    configuration: JsonObject, own: list[x509.Certificate], authority_name: str, now: datetime
) -> list[JsonObject]:
    """The JSON patch that gives every webhook of a configuration its bundle; empty when there is nothing to do."""
    operations: list[JsonObject] = []
    if "deletionTimestamp" in configuration.get("metadata", {}):
        return operations
    for index, webhook in enumerate(configuration.get("webhooks") or []):
        path = f"/webhooks/{index}"
        call = webhook["clientConfig"]
        bundle = merge_bundle(_bundle_of(call), own, authority_name, now)
        if bundle is None:
            continue
        operations += [
            {"op": "test", "path": f"{path}/name", "value": webhook["name"]},
            {"op": "test", "path": f"{path}/clientConfig", "value": call},
            {"op": "add", "path": f"{path}/clientConfig/caBundle", "value": base64.b64encode(bundle).decode()},
        ]
    return operations


def merge_bundle(current: bytes, own: list[x509.Certificate], authority_name: str, now: datetime) -> bytes | None:
    """The bundle that should be there instead of the current one; None when that will do.

    Replicas may know of different former authorities, so none of them takes away what another may have put there.
    """
    present = certificates_of(current)
    subject = subject_of(authority_name)
    others = [each for each in present if each not in own]
    ours = [each for each in others if each.subject == subject and is_authority(each)]
    if len(ours) == len(others) and all(each in present for each in own):
        return None
    valid = [each for each in ours if each.not_valid_after_utc > now]
    valid.sort(key=lambda each: each.not_valid_before_utc, reverse=True)
    return render([*own, *valid[:MAX_AUTHORITIES]])


def _bundle_of(call: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(call.get("caBundle") or "", validate=True)
    except ValueError:
        return b""
