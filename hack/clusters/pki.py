"""Certificates and keys of a cluster: two authorities (the API server's and etcd's), and what they sign."""

from __future__ import annotations

import ipaddress
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LIFETIME = timedelta(days=365)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, certificate: Path, key: Path) -> None:
        """Write both files; only the user may read the key."""
        certificate.write_bytes(self.certificate)
        write_secret(key, self.key)


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only the user may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


class Authority:
    """A certificate authority that lives as long as the object; its key is never written."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name, ())
        usage = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate: bytes = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, organisations: Sequence[str] = (), *, serving: bool = False) -> Pair:
        """Return a certificate for a client (user `name` of the groups `organisations`) or for a server on loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if serving else [])]
        builder = (
            _builder(_name(name, organisations), self._name, key.public_key())
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if serving:
            addresses = [ipaddress.ip_address(text) for text in ("127.0.0.1", "::1")]
            names: list[x509.GeneralName] = [x509.IPAddress(address) for address in addresses]
            names += [x509.DNSName(text) for text in ("localhost", "kubernetes.default.svc")]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def service_account_keys() -> tuple[bytes, bytes]:
    """Return a new private and public key for signing service-account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _pem(key), public


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _name(common_name: str, organisations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organisations]
    with warnings.catch_warnings():
        # The name of a service account may be longer than the 64 characters that X.520 allows. Kubernetes copes.
        warnings.filterwarnings("ignore", message="Attribute's length")
        return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name, _validate=False)])


def _builder(subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )
