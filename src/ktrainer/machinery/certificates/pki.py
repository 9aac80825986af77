"""Making certificates: an authority of our own and what it issues. Pure, but for the randomness of keys and serials.

ECDSA P-256 throughout: a key costs 20 µs, where RSA would hold up the event loop. Certificates and keys travel as PEM.
Import this only where certificates are our own business: the library behind it takes its time to load.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(hours=1)
"""How long before its making a certificate begins to be valid, for clocks that are behind."""

_CURVE = ec.SECP256R1()

_MAX_COMMON_NAME_CHARS = 64
"""X.509 allows no more; clients look at the other names only."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class PkiPolicy:
    """What certificates we make and keep."""

    authority_name: str
    """The common name of the authority, by which replicas know the certificates that one of them has made."""
    names: tuple[str, ...]
    """DNS names and IP addresses that the serving certificate must be good for, the most important first."""
    authority_lifetime: timedelta = timedelta(days=3650)
    serving_lifetime: timedelta = timedelta(days=365)
    look_ahead: timedelta = timedelta(days=90)
    """How long before its end a certificate is replaced."""

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("a serving certificate needs a name")
        # X.509 knows whole seconds only.
        if min(self.authority_lifetime, self.serving_lifetime) < self.look_ahead + timedelta(seconds=2):
            raise ValueError("certificates would be due for replacement as soon as they are made")


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The names under which a Service is called; API servers use the first."""
    return (f"{service}.{namespace}.svc", service, f"{service}.{namespace}", f"{service}.{namespace}.svc.cluster.local")


def create_authority(policy: PkiPolicy, now: datetime) -> Pair:
    """Make a new authority, which signs itself."""
    key = ec.generate_private_key(_CURVE)
    name = subject_of(policy.authority_name)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(name, name, key, now, now + policy.authority_lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(authority: Pair, policy: PkiPolicy, now: datetime) -> Pair:
    """Make a new serving certificate, which ends no later than its authority; raises ValueError for a bad authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = load_key(authority.key)
    key = ec.generate_private_key(_CURVE)
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    not_after = min(now + policy.serving_lifetime, issuer.not_valid_after_utc)
    certificate = (
        _builder(subject_of(policy.names[0]), issuer.subject, key, now, not_after)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([*map(general_name_of, policy.names)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Read an authority's private key; raises ValueError where it is malformed, protected or of another kind."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of an elliptic curve")
    return key


def subject_of(common_name: str) -> x509.Name:
    """The subject of certificates by that name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_MAX_COMMON_NAME_CHARS])])


def general_name_of(name: str) -> x509.GeneralName:
    """A DNS name or an IP address as a certificate spells it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), pem)
