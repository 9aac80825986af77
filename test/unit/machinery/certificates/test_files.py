from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.machinery.certificates.expiry import ExpiryWatch
from ktrainer.machinery.certificates.files import POLL_SECONDS, CertificateFiles, CertificateFolder
from ktrainer.machinery.certificates.metrics import CertificateMetrics
from ktrainer.machinery.certificates.pki import Pair, PkiPolicy, create_authority, issue
from support.replicas import RecordingCertificate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.virtualtime import VirtualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = PkiPolicy("ca", ("hook.system.svc",))
AUTHORITY = create_authority(POLICY, NOW)
PAIRS = [issue(AUTHORITY, POLICY, NOW) for _ in range(3)]


class Volume:
    """A folder whose files are exchanged as kubelets do it: behind a link to a folder of a new name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._versions = 0

    def write(self, pair: Pair) -> None:
        self._versions += 1
        version = self.path / f"..v{self._versions}"
        version.mkdir()
        (version / "tls.crt").write_bytes(pair.certificate)
        (version / "tls.key").write_bytes(pair.key)
        link = self.path / "..new"
        link.symlink_to(version.name)
        link.rename(self.path / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")


class Watched:
    """The files being watched, and what is served."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        self.volume = Volume(path)
        self.registry = CollectorRegistry()
        self.serving = RecordingCertificate(lambda certificate: None)
        self.expiring: list[datetime] = []
        metrics = CertificateMetrics(self.registry)
        self.files = CertificateFiles(
            CertificateFolder(path, POLICY.names),
            self.serving,
            expiry=ExpiryWatch(metrics, self.expiring.append, clock),
            metrics=metrics,
            clock=clock,
        )

        self._task: asyncio.Task[None] | None = None

    def start(self, pair: Pair | None = None) -> None:
        """Begin to watch, with this pair in the folder."""
        if pair is not None:
            self.volume.write(pair)
        self._task = asyncio.create_task(self.files.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def count(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"certwatcher_read_certificate_{name}total")


@pytest.fixture
async def watched(tmp_path: Path, virtual_clock: VirtualClock) -> AsyncIterator[Watched]:
    watched = Watched(tmp_path, virtual_clock)
    yield watched
    await watched.stop()


async def test_the_files_should_be_served_once_they_are_there(watched: Watched, virtual_clock: VirtualClock) -> None:
    watched.start()
    await asyncio.sleep(25)
    is_ready = watched.files.is_ready
    watched.volume.write(PAIRS[0])
    await watched.files.wait_ready()
    assert (is_ready, watched.files.is_ready) == (False, True)
    assert watched.serving.certificate == PAIRS[0].certificate
    assert virtual_clock.monotonic() == 3 * POLL_SECONDS
    assert (
        watched.registry.get_sample_value("webhook_cert_not_after_seconds") == (NOW + timedelta(days=365)).timestamp()
    )


async def test_exchanged_files_should_be_served_within_seconds(watched: Watched) -> None:
    watched.start(PAIRS[0])
    for pair in PAIRS:
        watched.volume.write(pair)
        await asyncio.sleep(POLL_SECONDS)
        assert watched.serving.certificate == pair.certificate
    await asyncio.sleep(10 * POLL_SECONDS)
    assert watched.serving.installs == len(PAIRS), "what stays the same is not loaded again"


EXPIRED = issue(AUTHORITY, POLICY, NOW - timedelta(days=365))
OTHER_NAME = issue(AUTHORITY, PkiPolicy("ca", ("other",)), NOW)


@pytest.mark.parametrize(
    "bad, problem",
    [
        pytest.param(Pair(PAIRS[1].certificate, PAIRS[2].key), "does not belong", id="mismatched"),
        pytest.param(Pair(b"", b""), "is missing", id="empty"),
        pytest.param(Pair(PAIRS[1].certificate[:100], PAIRS[1].key), "unreadable", id="cut off"),
        pytest.param(EXPIRED, "expires at", id="expired"),
        pytest.param(OTHER_NAME, "is not for hook.system.svc", id="another name"),
    ],
)
async def test_what_cannot_be_served_should_leave_the_former_in_use(watched: Watched, bad: Pair, problem: str) -> None:
    watched.start(PAIRS[0])
    await asyncio.sleep(1)
    watched.volume.write(bad)
    with capture_logs() as logs:
        await asyncio.sleep(2 * POLL_SECONDS)
    assert watched.serving.certificate == PAIRS[0].certificate
    assert problem in logs[0]["error"]
    assert (watched.count(""), watched.count("errors_")) == (3, 2)
    watched.volume.write(PAIRS[1])
    await asyncio.sleep(POLL_SECONDS)
    assert watched.serving.certificate == PAIRS[1].certificate


async def test_files_that_vanish_should_leave_the_former_in_use(watched: Watched) -> None:
    watched.start(PAIRS[0])
    await asyncio.sleep(1)
    (watched.volume.path / "..data").unlink()
    with capture_logs() as logs:
        await asyncio.sleep(POLL_SECONDS)
    assert watched.serving.certificate == PAIRS[0].certificate
    assert [entry["event"] for entry in logs] == ["certificate in the folder cannot be used"]


async def test_a_chain_should_be_served_whole(watched: Watched) -> None:
    chain = Pair(PAIRS[0].certificate + AUTHORITY.certificate, PAIRS[0].key)
    watched.start(chain)
    await asyncio.sleep(1)
    assert watched.serving.certificate == chain.certificate


async def test_a_certificate_under_its_older_label_should_be_served(watched: Watched) -> None:
    pair = Pair(PAIRS[0].certificate.replace(b" CERTIFICATE-----", b" X509 CERTIFICATE-----"), PAIRS[0].key)
    watched.start(pair)
    await asyncio.sleep(2 * POLL_SECONDS)
    assert (watched.serving.certificate, watched.count("errors_")) == (pair.certificate, 0)


async def test_a_certificate_for_a_name_that_is_no_text_should_be_served(watched: Watched) -> None:
    """Old authorities write names in Latin-1 as T61String; clients look at the alternative ones only."""
    utf8_string, t61_string, length = b"\x0c", b"\x14", b"\x0f"
    name, odd_name = b"hook.system.svc", "hook.systém.svc".encode("latin-1")
    der = ssl.PEM_cert_to_DER_cert(PAIRS[0].certificate.decode())
    odd = der.replace(utf8_string + length + name, t61_string + length + odd_name)
    pair = Pair(ssl.DER_cert_to_PEM_cert(odd).encode(), PAIRS[0].key)
    watched.start(pair)
    await asyncio.sleep(2 * POLL_SECONDS + 1)
    assert (watched.serving.certificate, watched.count(""), watched.count("errors_")) == (pair.certificate, 3, 0)


async def test_a_certificate_that_nobody_renews_should_be_warned_about(watched: Watched) -> None:
    ends_soon = issue(AUTHORITY, PkiPolicy("ca", POLICY.names, look_ahead=timedelta(0)), NOW - timedelta(days=336))
    watched.start(ends_soon)
    await asyncio.sleep(60)
    assert watched.expiring == [NOW + timedelta(days=29)]
