"""The TLS context of the connections to an API server, made anew when the files that it comes from have changed.

A context that is in use is never altered, since a bad pair of files would leave it broken. Whoever holds connections
keeps them apart by context, so a new one means new connections.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ktrainer.client.config.config import ConfigError
from ktrainer.client.transport.privatefile import private_file

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.client.config.config import Material, TlsConfig

RELOAD_SECONDS = 300.0
"""How often the files are looked at."""

_log = structlog.get_logger(__name__)


class CertificatePair(NamedTuple):
    """What we show to the server, in PEM."""

    certificate: bytes
    key: bytes


class _Contents(NamedTuple):
    authorities: bytes | None
    pair: CertificatePair | None


class TlsContexts:
    """The current TLS context. Plain and atomic; reads small files while it runs."""

    def __init__(self, config: TlsConfig, clock: Clock) -> None:
        """Raises ConfigError when the files cannot be used."""
        self._config = config
        self._clock = clock
        self._contents = self._read()
        """What the context was made of, as far as the configuration goes."""
        self._pair: CertificatePair | None = None
        """A pair that a plugin gave us; it beats the one in the files."""
        self._context = self._build(self._contents)
        self._read_at = clock.monotonic()

    def context(self, pair: CertificatePair | None = None) -> ssl.SSLContext:
        """The context for a connection that is made now, with a pair that beats the configured one.

        The same object as long as nothing has changed.
        """
        if self._clock.monotonic() - self._read_at >= RELOAD_SECONDS:
            self.reload()
        if pair != self._pair:
            self._pair = pair
            self._replace(self._contents)
        return self._context

    def reload(self) -> bool:
        """Look at the files now; return whether there is a new context. Files that cannot be used change nothing."""
        self._read_at = self._clock.monotonic()
        try:
            contents = self._read()
        except ConfigError as error:
            _log.warning("keeping the TLS settings, their files cannot be read", reason=str(error))
            return False
        return contents != self._contents and self._replace(contents)

    def reject(self, context: ssl.SSLContext) -> bool:
        """Learn that a context led to no trust; look at the files at once, unless the context has been replaced since.

        Returns whether there is another one now. Of many connections that fail together, the first finds the news.
        """
        return self._context is not context or self.reload()

    def renew(self) -> None:
        """Make a new context of the same contents, so that no idle connection is used again."""
        self._replace(self._contents)

    def _replace(self, contents: _Contents) -> bool:
        try:
            self._context = self._build(contents)
        except ConfigError as error:
            _log.warning("keeping the TLS settings, the new ones cannot be used", reason=str(error))
            return False
        self._contents = contents
        return True

    def _read(self) -> _Contents:
        config = self._config
        authorities = None if config.authorities is None else _read(config.authorities)
        if config.certificate is None or config.key is None:
            return _Contents(authorities, None)
        return _Contents(authorities, CertificatePair(_read(config.certificate), _read(config.key)))

    def _build(self, contents: _Contents) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._config.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._config.authorities is None or contents.authorities is None:
            context.load_default_certs()
        else:
            try:
                _load_authorities(context, contents.authorities)
            except (ssl.SSLError, ValueError) as error:
                raise self._config.authorities.error("not a certificate in PEM") from error
            # Whoever is given is trusted, as in Go, even if he is an intermediate whose own issuer is not known.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if pair := self._pair or contents.pair:
            try:
                _load_pair(context, pair)
            except (ssl.SSLError, OSError, ValueError) as error:
                raise self._pair_error(pair) from error
        return context

    def _pair_error(self, pair: CertificatePair) -> ConfigError:
        certificate, key = self._config.certificate, self._config.key
        if pair is self._pair or certificate is None or key is None:
            return ConfigError("credential plugin", "", "not a certificate with its unencrypted key in PEM")
        try:
            _load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair.certificate)
        except (ssl.SSLError, ValueError):
            return certificate.error("not a certificate in PEM")
        return key.error("not the unencrypted key of the certificate, in PEM")


def _read(material: Material) -> bytes:
    try:
        return material.read()
    except OSError as error:
        raise material.error(error.strerror or str(error)) from error


def _load_authorities(context: ssl.SSLContext, certificates: bytes) -> None:
    context.load_verify_locations(cadata=certificates.decode("ascii", "ignore"))


def _load_pair(context: ssl.SSLContext, pair: CertificatePair) -> None:
    # The ssl module reads a pair from files only; both may be in one.
    with private_file(pair.certificate + b"\n" + pair.key) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted")
