import ssl

import pytest
from structlog.testing import capture_logs

from ktrainer.api.configuration import Tls
from ktrainer.app.tls import decide_tls
from ktrainer.machinery.certificates.serving import DEFAULT_TLS, ServingCertificate, TlsPolicy


@pytest.mark.parametrize(
    "settings, policy",
    [
        (Tls(), DEFAULT_TLS),
        (Tls(min_version="1.2"), DEFAULT_TLS),
        (Tls(min_version="1.3"), TlsPolicy(ssl.TLSVersion.TLSv1_3)),
        (
            Tls(cipher_suites=["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"]),
            TlsPolicy(ciphers=("ECDHE-ECDSA-AES128-GCM-SHA256",)),
        ),
        (Tls(next_protos=["http/1.1"]), DEFAULT_TLS),
    ],
)
def test_what_is_known_should_be_used_without_a_word(settings: Tls, policy: TlsPolicy) -> None:
    with capture_logs() as logs:
        assert decide_tls(settings) == policy
    assert logs == []


@pytest.mark.parametrize(
    "settings, field",
    [
        (Tls(min_version="1.1"), "tls.minVersion"),
        (Tls(min_version="newest"), "tls.minVersion"),
        (Tls(cipher_suites=["TLS_RSA_WITH_RC4_128_SHA"]), "tls.cipherSuites[0]"),
        (Tls(next_protos=["h2", "http/1.1"]), "tls.nextProtos"),
    ],
)
def test_what_is_not_known_should_be_warned_of_and_not_used(settings: Tls, field: str) -> None:
    with capture_logs() as logs:
        assert decide_tls(settings) == DEFAULT_TLS
    assert [(log["log_level"], log["field"]) for log in logs] == [("warning", field)]


def test_the_library_should_know_every_cipher() -> None:
    names = [
        f"TLS_ECDHE_{key}_WITH_{cipher}"
        for key in ("RSA", "ECDSA")
        for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256", "AES_128_CBC_SHA256")
    ]
    policy = decide_tls(Tls(cipher_suites=names))
    offered = {cipher["name"] for cipher in ServingCertificate(tls=policy).context.get_ciphers()}
    assert set(policy.ciphers) <= offered
