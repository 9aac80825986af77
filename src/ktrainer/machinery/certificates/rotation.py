"""What to do about the certificates that replicas share in a Secret, and what then to put there. Pure decisions.

A new authority leaves the certificates of the former ones behind, so that replicas which still serve what those have
issued stay trusted until they, too, have changed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from cryptography.hazmat.primitives.serialization import Encoding

from ktrainer.machinery.certificates.pki import Pair, PkiPolicy, create_authority, issue
from ktrainer.machinery.certificates.validity import (
    certificates_of,
    find_authority_problem,
    find_serving_problem,
    is_authority,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from cryptography import x509

MAX_PREVIOUS = 4
"""Former authorities that are remembered, the latest first."""


class Key(StrEnum):
    """The keys of the Secret."""

    AUTHORITY = "ca.crt"
    AUTHORITY_KEY = "ca.key"
    PREVIOUS = "ca-prev.crt"
    SERVING = "tls.crt"
    SERVING_KEY = "tls.key"


@dataclass(frozen=True, slots=True)
class Material:
    """All that the Secret holds."""

    authority: Pair
    serving: Pair
    previous: bytes
    """The certificates of former authorities, one after the other; empty where there are none."""

    @classmethod
    def of(cls, data: Mapping[str, bytes]) -> Self:
        """Read it from the Secret's data; what is missing is empty."""
        return cls(
            authority=Pair(data.get(Key.AUTHORITY, b""), data.get(Key.AUTHORITY_KEY, b"")),
            serving=Pair(data.get(Key.SERVING, b""), data.get(Key.SERVING_KEY, b"")),
            previous=data.get(Key.PREVIOUS, b""),
        )

    def data(self) -> dict[str, bytes]:
        """Write it as the Secret's data."""
        return {
            Key.AUTHORITY.value: self.authority.certificate,
            Key.AUTHORITY_KEY.value: self.authority.key,
            Key.PREVIOUS.value: self.previous,
            Key.SERVING.value: self.serving.certificate,
            Key.SERVING_KEY.value: self.serving.key,
        }


class Action(StrEnum):
    """What the Secret needs."""

    KEEP = "keep"
    RENEW_SERVING = "renew the serving certificate"
    RENEW_ALL = "renew authority and serving certificate"


@dataclass(frozen=True, slots=True)
class Decision:
    """An action, and why."""

    action: Action
    reason: str = ""


def decide_rotation(material: Material, policy: PkiPolicy, now: datetime) -> Decision:
    """Decide what the Secret needs, such that it is good for longer than the policy's look-ahead."""
    until = now + policy.look_ahead
    if problem := find_authority_problem(material.authority, now, until):
        return Decision(Action.RENEW_ALL, problem)
    if problem := find_serving_problem(material.serving, policy.names, now, until, material.authority.certificate):
        return Decision(Action.RENEW_SERVING, problem)
    return Decision(Action.KEEP)


def is_usable(material: Material, policy: PkiPolicy, now: datetime) -> bool:
    """Whether the serving certificate can be presented at this moment, however soon it needs to be renewed."""
    return find_serving_problem(material.serving, policy.names, now, now, material.authority.certificate) is None


def build_material(
    action: Action, material: Material, policy: PkiPolicy, now: datetime, known: Iterable[bytes] = ()
) -> Material:
    """Make what the Secret needs; `known` are authorities that may be in use, although the Secret does not tell."""
    if action is Action.KEEP:
        return material
    authority = material.authority if action is Action.RENEW_SERVING else create_authority(policy, now)
    former = [*known, material.authority.certificate, material.previous]
    return Material(authority, issue(authority, policy, now), _former_authorities(former, authority.certificate, now))


def render(certificates: Iterable[x509.Certificate]) -> bytes:
    """Write certificates as PEM, each once, the latest first, so that every replica writes the same."""
    ordered = sorted(set(certificates), key=lambda each: (each.not_valid_before_utc, each.serial_number), reverse=True)
    return b"".join(each.public_bytes(Encoding.PEM) for each in ordered)


def _former_authorities(bundles: Iterable[bytes], current: bytes, now: datetime) -> bytes:
    excluded = certificates_of(current)
    candidates = {certificate for bundle in bundles for certificate in certificates_of(bundle)}
    former = [
        each for each in candidates if each not in excluded and each.not_valid_after_utc > now and is_authority(each)
    ]
    former.sort(key=lambda each: each.not_valid_before_utc, reverse=True)
    return render(former[:MAX_PREVIOUS])
