"""The TLS settings of the configuration in terms of the library. What it does not know is warned of, and not used."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

import structlog

from ktrainer.machinery.certificates.serving import DEFAULT_TLS, TlsPolicy

if TYPE_CHECKING:
    from ktrainer.api.configuration import Tls

_log = structlog.get_logger(__name__)

_VERSIONS: Final = {
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}

_CIPHERS: Final = {
    f"TLS_ECDHE_{key}_WITH_{name}": f"ECDHE-{key}-{library_name}"
    for key in ("ECDSA", "RSA")
    for name, library_name in {
        "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
        "AES_128_CBC_SHA": "AES128-SHA",
        "AES_128_CBC_SHA256": "AES128-SHA256",
        "AES_256_CBC_SHA": "AES256-SHA",
    }.items()
}
"""What OpenSSL calls the ciphers that are not weak, by their names in the registry."""

_ALWAYS: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The ciphers of TLS 1.3, which cannot be chosen: all of them are good."""

_PROTOCOL: Final = "http/1.1"


def decide_tls(settings: Tls) -> TlsPolicy:
    """The policy for all servers."""
    minimum = _VERSIONS.get(settings.min_version, DEFAULT_TLS.minimum_version)
    if settings.min_version and settings.min_version not in _VERSIONS:
        _log.warning("TLS version is not supported: the default is used", field="tls.minVersion")
    ciphers = []
    for index, name in enumerate(settings.cipher_suites):
        if name in _CIPHERS:
            ciphers.append(_CIPHERS[name])
        elif name not in _ALWAYS:
            _log.warning("cipher is not supported", field=f"tls.cipherSuites[{index}]", cipher=name)
    if any(protocol != _PROTOCOL for protocol in settings.next_protos):
        _log.warning("protocols are not supported: http/1.1 alone is offered", field="tls.nextProtos")
    return TlsPolicy(minimum, tuple(ciphers))
