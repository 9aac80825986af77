from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from clusters.pki import Authority, Pair
from ktrainer.client.config.config import ConfigError, Material, TlsConfig
from ktrainer.client.transport.tls import RELOAD_SECONDS, CertificatePair, TlsContexts
from support.clients import authority, server_tls
from support.virtualtime import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

CA = authority().certificate
PAIR = authority().issue("me")
OTHER = authority().issue("other")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def files(tmp_path: Path) -> TlsConfig:
    (tmp_path / "ca").write_bytes(CA)
    (tmp_path / "crt").write_bytes(PAIR.certificate)
    (tmp_path / "key").write_bytes(PAIR.key)
    return TlsConfig(Material(path=tmp_path / "ca"), Material(path=tmp_path / "crt"), Material(path=tmp_path / "key"))


def test_a_context_should_trust_its_authorities_only(clock: ManualClock) -> None:
    second = Authority("second").certificate
    context = TlsContexts(TlsConfig(Material(data=CA + second)), clock).context()
    assert context.cert_store_stats()["x509_ca"] == 2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


class Certified:
    """A key with a certificate from an issuer, or from itself."""

    def __init__(self, name: str, issuer: Certified | None = None, *, is_authority: bool = True) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now, by = datetime.now(UTC), issuer or self
        certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(by._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(by._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Let both talk to each other until they are done; raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        side = sides.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            sides.append(side)


def test_an_intermediate_authority_should_be_trusted_by_itself(clock: ManualClock, tmp_path: Path) -> None:
    root = Certified("root")
    intermediate = Certified("intermediate", root)
    leaf = Certified("localhost", intermediate, is_authority=False)
    server = server_tls(tmp_path, Pair(leaf.certificate, leaf.key))
    for given in (intermediate.certificate, intermediate.certificate + root.certificate):
        shake_hands(server, TlsContexts(TlsConfig(Material(data=given)), clock).context())
    for given in (root.certificate, CA):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(server, TlsContexts(TlsConfig(Material(data=given)), clock).context())


def test_an_insecure_context_should_trust_everybody(clock: ManualClock) -> None:
    context = TlsContexts(TlsConfig(insecure=True), clock).context()
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname


def test_the_context_should_stay_while_nothing_changes(clock: ManualClock, files: TlsConfig) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    clock.advance(RELOAD_SECONDS * 3)
    assert contexts.context() is first
    assert not contexts.reload()
    contexts.renew()
    assert contexts.context() is not first


@pytest.mark.parametrize("name", ["ca", "pair"])
def test_changed_files_should_be_seen_after_five_minutes(
    clock: ManualClock, files: TlsConfig, tmp_path: Path, name: str
) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    if name == "ca":
        (tmp_path / "ca").write_bytes(Authority("new").certificate)
    else:
        (tmp_path / "crt").write_bytes(OTHER.certificate)
        (tmp_path / "key").write_bytes(OTHER.key)
    clock.advance(RELOAD_SECONDS - 1)
    assert contexts.context() is first
    clock.advance(1)
    assert contexts.context() is not first


def test_changed_files_should_be_seen_at_once_when_asked(clock: ManualClock, files: TlsConfig, tmp_path: Path) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    (tmp_path / "ca").write_bytes(Authority("new").certificate)
    assert contexts.reload()
    assert contexts.context() is not first


def test_a_rejected_context_should_be_replaced_for_everybody_who_used_it(
    clock: ManualClock, files: TlsConfig, tmp_path: Path
) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    assert not contexts.reject(first)
    (tmp_path / "ca").write_bytes(Authority("new").certificate)
    assert [contexts.reject(first) for _ in range(3)] == [True] * 3
    assert not contexts.reject(contexts.context())


@pytest.mark.parametrize(
    ("name", "content"), [("ca", b""), ("ca", b"garbage \xff"), ("crt", b"garbage"), ("key", OTHER.key), ("key", None)]
)
def test_files_that_cannot_be_used_should_change_nothing(
    clock: ManualClock, files: TlsConfig, tmp_path: Path, name: str, content: bytes | None
) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with capture_logs() as logs:
        assert not contexts.reload()
    assert [each["log_level"] for each in logs] == ["warning"]
    assert contexts.context() is first
    (tmp_path / "ca").write_bytes(CA + CA)
    (tmp_path / "crt").write_bytes(OTHER.certificate)
    (tmp_path / "key").write_bytes(OTHER.key)
    assert contexts.reload()


@pytest.mark.parametrize(
    ("name", "content"), [("ca", b"garbage"), ("crt", b"garbage"), ("key", OTHER.key), ("ca", None), ("key", None)]
)
def test_files_that_cannot_be_used_should_be_refused_at_the_start(
    clock: ManualClock, files: TlsConfig, tmp_path: Path, name: str, content: bytes | None
) -> None:
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        TlsContexts(files, clock)
    assert caught.value.path == str(tmp_path / name)


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ca", "not a certificate in PEM"),
        ("crt", "not a certificate in PEM"),
        ("key", "not the unencrypted key of the certificate, in PEM"),
    ],
)
def test_what_cannot_be_used_should_be_named_by_its_field(
    clock: ManualClock, tmp_path: Path, name: str, message: str, *, is_file: bool
) -> None:
    (path := tmp_path / "file").write_bytes(b"garbage")
    good = {"ca": CA, "crt": PAIR.certificate, "key": PAIR.key}
    materials = {each: Material(data=content, setting=("kubeconfig", each)) for each, content in good.items()}
    materials[name] = Material(path if is_file else None, b"garbage", ("kubeconfig", name))
    with pytest.raises(ConfigError) as caught:
        TlsContexts(TlsConfig(materials["ca"], materials["crt"], materials["key"]), clock)
    assert str(caught.value) == f"kubeconfig: {name}: {f'{path}: ' if is_file else ''}{message}"


def test_an_encrypted_key_should_be_refused_instead_of_asked_about(clock: ManualClock) -> None:
    key = serialization.load_pem_private_key(PAIR.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    config = TlsConfig(Material(data=CA), Material(data=PAIR.certificate), Material(data=key))
    with pytest.raises(ConfigError, match="unencrypted") as caught:
        TlsContexts(config, clock)
    # OpenSSL by itself would say something else, after asking on the terminal.
    assert str(caught.value.__cause__) == "the key is encrypted"


def test_a_pair_of_a_plugin_should_beat_the_configured_one(clock: ManualClock, files: TlsConfig) -> None:
    contexts = TlsContexts(files, clock)
    first = contexts.context()
    pair = CertificatePair(OTHER.certificate, OTHER.key)
    second = contexts.context(pair)
    assert second is not first
    assert contexts.context(CertificatePair(*pair)) is second
    with capture_logs() as logs:
        assert contexts.context(CertificatePair(b"garbage", b"")) is second
    assert len(logs) == 1
