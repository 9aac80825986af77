"""A serving certificate from outside: `tls.crt` and `tls.key` in a folder, as cert-manager and kubelets provide them.

Their content is looked at again and again, because a Secret in a volume is exchanged behind a symbolic link, of which
modification times tell nothing. What cannot be served is not: the former pair stays. Nothing is ever written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from ktrainer.machinery.certificates.pki import Pair
from ktrainer.machinery.certificates.validity import end_of, find_serving_problem

if TYPE_CHECKING:
    from pathlib import Path

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.certificates.expiry import ExpiryWatch
    from ktrainer.machinery.certificates.metrics import CertificateMetrics
    from ktrainer.machinery.certificates.serving import ServingCertificate

_log = structlog.get_logger(__name__)

POLL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CertificateFolder:
    """Where the certificate is, and what it must be good for."""

    path: Path
    names: tuple[str, ...] = ()
    """DNS names and IP addresses; where none are given, any will do."""


class CertificateFiles:
    """Serves what is in the folder, for as long as `run` runs."""

    def __init__(
        self,
        folder: CertificateFolder,
        serving: ServingCertificate,
        *,
        expiry: ExpiryWatch,
        metrics: CertificateMetrics,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._serving = serving
        self._expiry = expiry
        self._metrics = metrics
        self._clock = clock
        self._served: Pair | None = None
        self._ready = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether a certificate is served."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Wait for the first certificate."""
        await self._ready.wait()

    async def run(self) -> None:
        """Read, over and over, until cancelled."""
        while True:
            await self._check()
            await asyncio.sleep(POLL_SECONDS)

    async def _check(self) -> None:
        self._metrics.reads.inc()
        try:
            pair = await asyncio.to_thread(self._read)
            if pair != self._served:
                self._serve(pair)
        except (OSError, ValueError) as error:
            self._metrics.read_errors.inc()
            _log.warning("certificate in the folder cannot be used", folder=str(self._folder.path), error=str(error))
        self._expiry.check(self._clock.now())

    def _read(self) -> Pair:
        return Pair((self._folder.path / "tls.crt").read_bytes(), (self._folder.path / "tls.key").read_bytes())

    def _serve(self, pair: Pair) -> None:
        """Present this pair; raises ValueError or ssl.SSLError, which is an OSError, if that is impossible."""
        now = self._clock.now()
        if problem := find_serving_problem(pair, self._folder.names, now, now):
            raise ValueError(problem)
        self._serving.install(pair.certificate, pair.key)
        self._served = pair
        self._ready.set()
        self._expiry.served(end_of(pair.certificate))
        _log.info("serving certificate in use", folder=str(self._folder.path))
