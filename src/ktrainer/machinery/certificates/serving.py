"""The certificate that a TLS server presents, exchangeable while it listens.

The context that the server listens with never has a certificate of its own: loading a pair that does not match into a
live context breaks all later handshakes. A pair is loaded into a fresh context, and if that succeeds, handshakes from
then on are given that one. Connections that are open stay as they are.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

from ktrainer.client.transport.privatefile import private_file


@dataclass(frozen=True, slots=True)
class TlsPolicy:
    """What handshakes a server takes part in."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()
    """The ciphers below TLS 1.3 that are allowed, as OpenSSL calls them; without any, the library chooses."""


DEFAULT_TLS: Final = TlsPolicy()


class ServingCertificate:
    """Holds the pair in use. Plain and atomic: a handshake sees either the old pair or the new one."""

    def __init__(self, client_authorities: bytes = b"", tls: TlsPolicy = DEFAULT_TLS) -> None:
        """With the PEM of authorities given, clients must present a certificate that one of them has issued.

        Raises ssl.SSLError where the policy has no cipher that the library knows.
        """
        self._client_authorities = client_authorities
        self._tls = tls
        self.context = self._build_context()
        """What to listen with. Handshakes fail until the first pair is installed."""
        # Called for clients without SNI, too: the name is None then.
        self.context.sni_callback = self._choose
        self._current: ssl.SSLContext | None = None
        """The context that has the pair in use; replaced as a whole, never changed."""

    def install(self, certificate: bytes, key: bytes) -> None:
        """Serve this pair (PEM, the certificate first and then those that lead to its authority) from now on.

        Raises ssl.SSLError when it is malformed or does not match; the former pair then stays in use.
        """
        context = self._build_context()
        with private_file(certificate + b"\n" + key) as path:
            # Without a password callback OpenSSL would ask for the password of an encrypted key on the terminal.
            context.load_cert_chain(path, password="")
        self._current = context

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None

    def _build_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._tls.minimum_version
        if self._tls.ciphers:
            context.set_ciphers(":".join(self._tls.ciphers))
        context.set_alpn_protocols(["http/1.1"])
        if self._client_authorities:
            context.load_verify_locations(cadata=self._client_authorities.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context
