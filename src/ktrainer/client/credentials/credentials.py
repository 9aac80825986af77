"""As whom requests are sent: what goes into the Authorization header, and the certificate that a plugin gave us.

Nothing is cached for the life of the process. A source that fails keeps what it gave before, as long as that may be
good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import structlog

from ktrainer.client.config.config import Authorization, TokenFile
from ktrainer.client.errors import CredentialsFailed

if TYPE_CHECKING:
    from pathlib import Path

    from ktrainer.aio.clock import Clock
    from ktrainer.client.config.config import CredentialSource
    from ktrainer.client.transport.tls import CertificatePair

REREAD_SECONDS = 50.0
"""How old a token from a file may get before it is read again."""

_TOKEN = re.compile(r"[\x21-\x7e]+")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Grant:
    """Credentials as they are at one time; a new object whenever they have been renewed."""

    header: str = field(default="", repr=False)
    """The value of the Authorization header; empty for none."""
    pair: CertificatePair | None = field(default=None, repr=False)
    """A certificate to use instead of the configured one."""


class Credentials(Protocol):
    """A source of grants."""

    async def grant(self) -> Grant:
        """Return the current grant, after renewing it where it is due; raises CredentialsFailed."""
        ...

    def reject(self, grant: Grant) -> bool:
        """Learn that the server did not accept a grant; return whether the next one may do better."""
        ...

    async def close(self) -> None:
        """Stop whatever is under way."""
        ...


class FixedCredentials:
    """One grant for ever, or none."""

    def __init__(self, header: str = "") -> None:
        self._grant = Grant(header)

    async def grant(self) -> Grant:
        """Return the grant."""
        return self._grant

    def reject(self, grant: Grant) -> bool:
        """There is no other."""
        return False

    async def close(self) -> None:
        """There is nothing to stop."""


class FileCredentials:
    """The bearer token in a file, read again about once a minute, since whoever writes it replaces it in time."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._grant: Grant | None = None
        """None before the file has been read for the first time."""
        self._read_at = 0.0

    async def grant(self) -> Grant:
        """Return the token of the file; raises CredentialsFailed while there has never been one."""
        if self._grant is None or self._clock.monotonic() - self._read_at >= REREAD_SECONDS:
            return self._read()
        return self._grant

    def reject(self, grant: Grant) -> bool:
        """Read the file again at once."""
        return self._read() is not grant

    async def close(self) -> None:
        """There is nothing to stop."""

    def _read(self) -> Grant:
        self._read_at = self._clock.monotonic()
        try:
            header = bearer_of(self._path.read_text(encoding="ascii").strip())
        except (OSError, ValueError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else "not a token"
            if self._grant is None:
                raise CredentialsFailed(f"{self._path}: {reason}") from None
            _log.warning("keeping the token, its file cannot be read", path=str(self._path), reason=reason)
            return self._grant
        if self._grant is None or self._grant.header != header:
            self._grant = Grant(header)
        return self._grant


def build_credentials(source: CredentialSource, clock: Clock) -> Credentials:
    """Return the credentials that the configuration asks for."""
    if source is None:
        return FixedCredentials()
    if isinstance(source, Authorization):
        return FixedCredentials(source.header)
    if isinstance(source, TokenFile):
        return FileCredentials(source.path, clock)
    # Imported here: few need plugins, and what runs them is large.
    from ktrainer.client.credentials.execcredentials import ExecCredentials

    return ExecCredentials(source, clock)


def bearer_of(token: str) -> str:
    """The header for a token; raises ValueError for what would be no header, or more than one."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("not a token")
    return f"Bearer {token}"
