from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from ktrainer.machinery.certificates.pki import Pair, PkiPolicy, create_authority, issue, load_key, service_names

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = PkiPolicy("hook-ca", (*service_names("hook", "system"), "127.0.0.1"))


def load(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def test_an_authority_should_be_one_and_nothing_else() -> None:
    pair = create_authority(POLICY, NOW)
    certificate = load(pair)
    certificate.verify_directly_issued_by(certificate)
    assert certificate.subject.rfc4514_string() == "CN=hook-ca"
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.crl_sign, usage.value.digital_signature) == (True, True, False)
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=3650)


def test_a_serving_certificate_should_be_good_for_all_names() -> None:
    authority = create_authority(POLICY, NOW)
    pair = issue(authority, POLICY, NOW)
    certificate = load(pair)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "hook.system.svc",
        "hook",
        "hook.system",
        "hook.system.svc.cluster.local",
    ]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    signer = load(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    identifier = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert identifier.key_identifier == signer.digest
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_the_chain_should_satisfy_a_strict_verifier() -> None:
    authority = create_authority(POLICY, NOW)
    serving = issue(authority, POLICY, NOW)
    store = Store([load(authority)])
    for name in service_names("hook", "system"):
        verifier = PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName(name))
        assert verifier.verify(load(serving), []) == [load(serving), load(authority)]


def test_a_serving_certificate_should_not_outlive_its_authority() -> None:
    policy = PkiPolicy("ca", ("a",), timedelta(seconds=150), timedelta(seconds=60), timedelta(seconds=30))
    authority = create_authority(policy, NOW)
    late = issue(authority, policy, NOW + timedelta(seconds=100))
    assert load(late).not_valid_after_utc == NOW + timedelta(seconds=150)


def test_serials_and_keys_should_never_repeat() -> None:
    authority = create_authority(POLICY, NOW)
    made = [create_authority(POLICY, NOW), *(issue(authority, POLICY, NOW) for _ in range(5)), authority]
    assert len({load(pair).serial_number for pair in made}) == len({pair.key for pair in made}) == 7
    assert all(load(pair).serial_number > 0 for pair in made)


def test_a_long_name_should_not_be_in_the_way() -> None:
    policy = PkiPolicy("ca", service_names("s" * 63, "n" * 63))
    certificate = load(issue(create_authority(policy, NOW), policy, NOW))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName)[0] == f"{'s' * 63}.{'n' * 63}.svc"


def test_a_policy_that_makes_no_sense_should_be_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        PkiPolicy("ca", ())
    with pytest.raises(ValueError, match="due for replacement as soon as"):
        PkiPolicy("ca", ("a",), serving_lifetime=timedelta(days=90))


ED25519 = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
"""


@pytest.mark.parametrize("pem", [b"", b"garbage", ED25519], ids=["none", "garbage", "another kind of key"])
def test_a_key_that_cannot_sign_should_be_refused(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_key(pem)
