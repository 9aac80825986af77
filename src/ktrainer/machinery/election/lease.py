"""The Lease of a leader election as data: how it is read and written. Knows no clock and does no I/O.

Anybody may write into a Lease, so its content is taken as it comes: what cannot be understood is named in `problems`
and never raises. Only an answer that is no Lease at all, such as a proxy's error page, is a `MalformedLease`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.kube.identity import Resource
from ktrainer.kube.timestamp import format_micro_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ktrainer.kube.identity import ObjectKey

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)

RELEASED_SECONDS = 1
"""The duration written into a lease that is given back; zero would be refused."""

_MAX_INT32 = 2**31 - 1
_EXCERPT_BYTES = 200
"""How much of an unintelligible answer an error message quotes."""


class MalformedLease(Exception):
    """An answer that should have been a Lease and is none."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One version of a Lease, as the server showed it."""

    resource_version: str
    holder: str | None
    """Who holds the lease: empty when nobody does, None when that cannot be understood."""
    duration_seconds: int | None
    """For how long the holder claims it; None when absent or not to be understood."""
    problems: tuple[str, ...]
    """What in the Lease cannot be understood, in words."""
    metadata: Mapping[str, Any]
    """The metadata to send back with the next write."""
    spec: Mapping[str, Any]
    """The record. Two versions with equal records differ in nothing that matters to an election."""


def parse_lease(body: bytes) -> Lease:
    """Read an answer of the server; raises MalformedLease when it is no Lease."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedLease(f"the answer is not JSON: {body[:_EXCERPT_BYTES]!r}") from error
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict) or document.get("kind") != LEASES.kind:
        raise MalformedLease(f"the answer is not a Lease: {body[:_EXCERPT_BYTES]!r}")
    resource_version = metadata.get("resourceVersion")
    if not isinstance(resource_version, str) or not resource_version:
        raise MalformedLease(f"the Lease has no resourceVersion: {body[:_EXCERPT_BYTES]!r}")
    # Absent managedFields are left alone by the server; there is no point in sending them to and fro.
    metadata.pop("managedFields", None)
    problems: list[str] = []
    spec = document.get("spec")
    is_readable = spec is None or isinstance(spec, dict)
    if not is_readable:
        problems.append(f"spec is {spec!r}")
    fields = spec if isinstance(spec, dict) else {}
    return Lease(
        resource_version=resource_version,
        holder=_holder_of(fields, problems) if is_readable else None,
        duration_seconds=_duration_of(fields, problems),
        problems=tuple(problems),
        metadata=metadata,
        spec=fields if is_readable else {"unreadable": spec},
    )


def build_claim(lease: Lease | None, key: ObjectKey, identity: str, duration_seconds: int, now: datetime) -> bytes:
    """Build the Lease with which `identity` takes or keeps the lease; None stands for a Lease that does not exist."""
    at = format_micro_time(now)
    claim = {"holderIdentity": identity, "leaseDurationSeconds": duration_seconds, "renewTime": at}
    if lease is None:
        metadata = {"name": key.name, "namespace": key.namespace}
        return _body_of(metadata, claim | {"acquireTime": at, "leaseTransitions": 0})
    transitions = _transitions_of(lease.spec)
    if lease.holder == identity:
        acquired = lease.spec.get("acquireTime")
        claim |= {"acquireTime": acquired if _is_time(acquired) else at, "leaseTransitions": transitions}
    else:
        # The field has 32 bits: at the end it starts anew, since a value that is refused would lock everybody out.
        claim |= {"acquireTime": at, "leaseTransitions": transitions + 1 if transitions < _MAX_INT32 else 0}
    return _body_of(lease.metadata, _foreign_fields(lease) | claim)


def build_release(lease: Lease, now: datetime) -> bytes:
    """Build the Lease that tells everybody that nobody holds it."""
    at = format_micro_time(now)
    release = {
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED_SECONDS,
        "renewTime": at,
        "acquireTime": at,
        "leaseTransitions": _transitions_of(lease.spec),
    }
    return _body_of(lease.metadata, _foreign_fields(lease) | release)


def _body_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> bytes:
    return orjson.dumps(
        {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec},
    )


def _foreign_fields(lease: Lease) -> dict[str, Any]:
    """The fields of the record that are not ours and must survive."""
    return {name: value for name, value in lease.spec.items() if name in {"strategy", "preferredHolder"}}


def _holder_of(spec: Mapping[str, Any], problems: list[str]) -> str | None:
    holder = spec.get("holderIdentity")
    if holder is None:
        return ""
    if isinstance(holder, str):
        return holder
    problems.append(f"holderIdentity is {holder!r}")
    return None


def _duration_of(spec: Mapping[str, Any], problems: list[str]) -> int | None:
    seconds = spec.get("leaseDurationSeconds")
    if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
        return seconds
    if seconds is not None:
        problems.append(f"leaseDurationSeconds is {seconds!r}")
    return None


def _transitions_of(spec: Mapping[str, Any]) -> int:
    transitions = spec.get("leaseTransitions")
    if isinstance(transitions, int) and not isinstance(transitions, bool) and 0 <= transitions <= _MAX_INT32:
        return transitions
    return 0


def _is_time(value: object) -> bool:
    try:
        parse_time(str(value))
    except ValueError:
        return False
    return isinstance(value, str)
