from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ktrainer.machinery.certificates.pki import Pair, PkiPolicy, create_authority, issue
from ktrainer.machinery.certificates.validity import (
    certificates_of,
    find_authority_problem,
    find_serving_problem,
    is_authority,
)
from support.cases import cases
from support.certificates import Issuer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = PkiPolicy("ca", ("hook.system.svc", "127.0.0.1"))
AUTHORITY = create_authority(POLICY, NOW)
SERVING = issue(AUTHORITY, POLICY, NOW)
OTHER_AUTHORITY = create_authority(POLICY, NOW)
OTHER = issue(OTHER_AUTHORITY, POLICY, NOW)


def protected(key: bytes) -> bytes:
    loaded = serialization.load_pem_private_key(key, None)
    return loaded.private_bytes(
        Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )


def test_what_we_make_should_be_found_good() -> None:
    assert find_authority_problem(AUTHORITY, NOW, NOW + timedelta(days=3649)) is None
    until = NOW + timedelta(days=364)
    assert find_serving_problem(SERVING, POLICY.names, NOW, until, AUTHORITY.certificate) is None


@pytest.mark.parametrize(
    "pair, at, problem",
    [
        pytest.param(Pair(b"", AUTHORITY.key), 0, "is missing", id="no certificate"),
        pytest.param(Pair(AUTHORITY.certificate, b""), 0, "unreadable", id="no key"),
        pytest.param(Pair(AUTHORITY.certificate[:-60], AUTHORITY.key), 0, "unreadable", id="cut off"),
        pytest.param(Pair(AUTHORITY.certificate, protected(AUTHORITY.key)), 0, "unreadable", id="protected key"),
        pytest.param(Pair(AUTHORITY.certificate, OTHER.key), 0, "does not belong", id="another key"),
        pytest.param(SERVING, 0, "not one of an authority", id="not an authority"),
        pytest.param(AUTHORITY, 3650, "expires at 2035-12-30T00:00:00", id="expired"),
        pytest.param(AUTHORITY, -1, "is not valid before 2025-12-31T23:00:00", id="not yet valid"),
    ],
)
def test_what_is_wrong_with_an_authority_should_be_told(pair: Pair, at: int, problem: str) -> None:
    now = NOW + timedelta(days=at)
    assert problem in str(find_authority_problem(pair, now, now))


@pytest.mark.parametrize(
    "pair, at, authority, problem",
    [
        pytest.param(Pair(b"", SERVING.key), 0, AUTHORITY, "is missing", id="no certificate"),
        pytest.param(Pair(SERVING.certificate, b"x"), 0, AUTHORITY, "unreadable", id="no key"),
        pytest.param(Pair(SERVING.certificate, protected(SERVING.key)), 0, AUTHORITY, "unreadable", id="protected key"),
        pytest.param(Pair(SERVING.certificate, OTHER.key), 0, AUTHORITY, "does not belong", id="another key"),
        pytest.param(SERVING, 0, OTHER_AUTHORITY, "not issued by", id="another authority of the same name"),
        pytest.param(SERVING, 365, AUTHORITY, "expires at 2027-01-01T00:00:00", id="expired"),
        pytest.param(SERVING, -1, AUTHORITY, "is not valid before", id="not yet valid"),
        pytest.param(AUTHORITY, 0, AUTHORITY, "is not for hook.system.svc, 127.0.0.1", id="no names"),
        pytest.param(
            issue(AUTHORITY, PkiPolicy("ca", ("hook.system.svc",)), NOW),
            0,
            AUTHORITY,
            "for 127.0.0.1",
            id="a name less",
        ),
    ],
)
def test_what_is_wrong_with_a_serving_certificate_should_be_told(
    pair: Pair, at: int, authority: Pair, problem: str
) -> None:
    now = NOW + timedelta(days=at)
    assert problem in str(find_serving_problem(pair, POLICY.names, now, now, authority.certificate))


def test_the_future_should_be_judged_as_well() -> None:
    until = NOW + timedelta(days=366)
    assert "expires" in str(find_serving_problem(SERVING, (), NOW, until))
    assert "expires" in str(find_authority_problem(AUTHORITY, NOW, NOW + timedelta(days=3651)))


def test_a_certificate_for_clients_only_should_not_serve() -> None:
    clients_only = Issuer().client_pair()
    now = datetime.now(UTC)
    assert "not for servers" in str(find_serving_problem(Pair(*clients_only), (), now, now))


def test_a_bundle_should_be_read_past_what_is_no_certificate() -> None:
    broken = AUTHORITY.certificate.replace(b"MII", b"???", 1)
    bundle = b"# comment\n" + AUTHORITY.certificate + broken + b"\xff\n" + SERVING.certificate + AUTHORITY.key
    found = [certificate.public_bytes(Encoding.PEM) for certificate in certificates_of(bundle)]
    assert found == [AUTHORITY.certificate, SERVING.certificate]
    assert certificates_of(b"") == []


def test_only_authorities_should_pass_for_such() -> None:
    (authority,), (serving,) = certificates_of(AUTHORITY.certificate), certificates_of(SERVING.certificate)
    assert (is_authority(authority), is_authority(serving)) == (True, False)


DER = x509.load_pem_x509_certificate(SERVING.certificate).public_bytes(Encoding.DER)
AUTHORITY_DER = x509.load_pem_x509_certificate(AUTHORITY.certificate).public_bytes(Encoding.DER)


@st.composite
def damaged(draw: st.DrawFn, der: bytes) -> bytes:
    """A certificate with a few bytes changed, as PEM."""
    content = bytearray(der)
    for position, value in draw(
        st.lists(st.tuples(st.integers(0, len(der) - 1), st.integers(0, 255)), min_size=1, max_size=4)
    ):
        content[position] = value
    body = base64.encodebytes(bytes(content))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


def with_bad_subject(der: bytes) -> bytes:
    """Replace the tag of the text in the name, which is parsed later than all else."""
    return replaced(der, b"\x55\x04\x03\x0c", b"\x55\x04\x03\x01")


def with_long_country(der: bytes) -> bytes:
    """Take the common name for that of a country, which should have two letters."""
    return replaced(der, b"\x55\x04\x03\x0c", b"\x55\x04\x06\x0c")


def replaced(der: bytes, old: bytes, new: bytes) -> bytes:
    """A certificate with some bytes replaced wherever they are, as PEM."""
    body = base64.encodebytes(der.replace(old, new))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


@settings(max_examples=cases(20_000))
@given(certificate=damaged(DER), authority=damaged(AUTHORITY_DER), key=st.sampled_from([SERVING.key, b"", b"x"]))
# Some of what is damaged is only frowned upon, such as a serial number of 0, or the name of a country in full.
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@pytest.mark.filterwarnings("ignore:Attribute's length must be:UserWarning")
@example(certificate=with_bad_subject(DER), authority=with_bad_subject(AUTHORITY_DER), key=SERVING.key)
@example(certificate=with_long_country(DER), authority=with_long_country(AUTHORITY_DER), key=SERVING.key)
def test_no_damage_should_raise(certificate: bytes, authority: bytes, key: bytes) -> None:
    for problem in (
        find_serving_problem(Pair(certificate, key), POLICY.names, NOW, NOW, AUTHORITY.certificate),
        find_serving_problem(SERVING, POLICY.names, NOW, NOW, authority),
        find_authority_problem(Pair(authority, AUTHORITY.key), NOW, NOW),
    ):
        assert problem is None or isinstance(problem, str)
    for each in certificates_of(authority + certificate):
        assert is_authority(each) in {True, False}
        assert isinstance(each.subject, x509.Name)
