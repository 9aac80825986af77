from datetime import UTC, datetime
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from clusters.pki import Authority, service_account_keys


def verifier_of(authority: Authority) -> PolicyBuilder:
    store = Store([x509.load_pem_x509_certificate(authority.certificate)])
    return PolicyBuilder().store(store).time(datetime.now(UTC))


def test_a_serving_certificate_should_be_valid_for_loopback() -> None:
    authority = Authority("authority")
    leaf = x509.load_pem_x509_certificate(authority.issue("server", serving=True).certificate)
    verifier = verifier_of(authority).build_server_verifier(x509.IPAddress(ip_address("127.0.0.1")))
    assert len(verifier.verify(leaf, [])) == 2


def test_a_certificate_of_another_authority_should_not_be_valid() -> None:
    leaf = x509.load_pem_x509_certificate(Authority("authority").issue("server", serving=True).certificate)
    verifier = verifier_of(Authority("authority")).build_server_verifier(x509.IPAddress(ip_address("127.0.0.1")))
    with pytest.raises(VerificationError):
        verifier.verify(leaf, [])


def test_a_client_certificate_should_tell_user_and_groups() -> None:
    name = "system:serviceaccount:" + "n" * 63 + ":" + "s" * 63
    leaf = x509.load_pem_x509_certificate(Authority("authority").issue(name, ["one", "two"]).certificate)
    with pytest.warns(UserWarning, match="length"):
        subject = leaf.subject
    values = {
        oid: [each.value for each in subject.get_attributes_for_oid(oid)]
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    }
    assert values == {NameOID.COMMON_NAME: [name], NameOID.ORGANIZATION_NAME: ["one", "two"]}


def test_service_account_keys_should_be_a_pair() -> None:
    private, public = service_account_keys()
    assert private.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert public.startswith(b"-----BEGIN PUBLIC KEY-----")
