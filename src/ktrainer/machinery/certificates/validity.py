"""Saying what is wrong with a certificate: from now until some later time, for those who shall trust it.

Total: whatever the bytes are, the answer is a reason or None, never an exception.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from ktrainer.machinery.certificates.pki import Pair, general_name_of, load_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_UNREADABLE = (
    InvalidSignature,
    TypeError,
    UnsupportedAlgorithm,
    ValueError,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What reading foreign bytes as a certificate may raise."""

_BLOCK = re.compile(rb"-----BEGIN (?:X509 )?CERTIFICATE-----.*?-----END (?:X509 )?CERTIFICATE-----", re.DOTALL)
"""A certificate under either of the labels that those take who load it to serve it."""


class _Flaw(ValueError):
    """The reason why a certificate is of no use."""


def find_authority_problem(pair: Pair, now: datetime, until: datetime) -> str | None:
    """Why an authority cannot issue and be trusted from `now` to `until`; None if it can."""
    try:
        certificate = _load(pair.certificate, "the authority's certificate")
        if load_key(pair.key).public_key() != certificate.public_key():
            raise _Flaw("the authority's key does not belong to its certificate")
        if not is_authority(certificate):
            raise _Flaw("the authority's certificate is not one of an authority that signs itself")
        _check_time(certificate, now, until, "the authority's certificate")
    except _UNREADABLE as error:
        return _reason(error, "the authority is unreadable")
    return None


def find_serving_problem(
    pair: Pair, names: Iterable[str], now: datetime, until: datetime, authority: bytes | None = None
) -> str | None:
    """Why a server cannot present this pair under these names; with an authority given, its clients trust only that."""
    try:
        certificate = _load(pair.certificate, "the serving certificate")
        key = serialization.load_pem_private_key(pair.key, password=None)
        if key.public_key() != certificate.public_key():
            raise _Flaw("the serving key does not belong to its certificate")
        _check_time(certificate, now, until, "the serving certificate")
        _check_use(certificate, names)
        if authority is not None and not is_issued_by(certificate, _load(authority, "the authority's certificate")):
            raise _Flaw("the serving certificate was not issued by the authority")
    except _UNREADABLE as error:
        return _reason(error, "the serving certificate or its key is unreadable")
    return None


def end_of(pem: bytes) -> datetime:
    """When a serving certificate ends; raises ValueError for what is none."""
    return _load(pem, "the serving certificate").not_valid_after_utc


def certificates_of(pem: bytes) -> list[x509.Certificate]:
    """The certificates in a bundle; what is not one is passed over."""
    certificates = []
    for block in _BLOCK.findall(pem):
        try:
            certificate = x509.load_pem_x509_certificate(block)
            _ = certificate.subject  # parsed only now, and those who use it shall not be surprised
        except _UNREADABLE:
            continue
        certificates.append(certificate)
    return certificates


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether this is the certificate of an authority that signs itself."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except _UNREADABLE:
        return False
    return constraints.ca and usage.key_cert_sign and is_issued_by(certificate, certificate)


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority's key has signed the certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except _UNREADABLE:
        return False
    return True


def _load(pem: bytes, what: str) -> x509.Certificate:
    if not pem.strip():
        raise _Flaw(f"{what} is missing")
    # The first one of a chain is the server's own.
    return x509.load_pem_x509_certificates(pem)[0]


def _check_time(certificate: x509.Certificate, now: datetime, until: datetime, what: str) -> None:
    if certificate.not_valid_before_utc > now:
        raise _Flaw(f"{what} is not valid before {certificate.not_valid_before_utc.isoformat()}")
    if certificate.not_valid_after_utc <= until:
        raise _Flaw(f"{what} expires at {certificate.not_valid_after_utc.isoformat()}")


def _check_use(certificate: x509.Certificate, names: Iterable[str]) -> None:
    extensions = {extension.oid: extension.value for extension in certificate.extensions}
    usage = extensions.get(x509.ExtendedKeyUsage.oid)
    if isinstance(usage, x509.ExtendedKeyUsage) and ExtendedKeyUsageOID.SERVER_AUTH not in usage:
        raise _Flaw("the serving certificate is not for servers")
    alternatives = extensions.get(x509.SubjectAlternativeName.oid)
    present = set(alternatives) if isinstance(alternatives, x509.SubjectAlternativeName) else set()
    if missing := [name for name in names if general_name_of(name) not in present]:
        raise _Flaw(f"the serving certificate is not for {', '.join(missing)}")


def _reason(error: Exception, otherwise: str) -> str:
    return str(error) if isinstance(error, _Flaw) else f"{otherwise}: {error}"
