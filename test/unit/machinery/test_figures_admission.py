"""The figures of admission and certificates in one table, so that none of them drifts unseen."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ktrainer.aio.backoff import BackoffPolicy
from ktrainer.machinery.admission import metrics as webhookmetrics
from ktrainer.machinery.admission import review as admissionreview
from ktrainer.machinery.admission import runner as admissionrunner
from ktrainer.machinery.admission import server as admissionserver
from ktrainer.machinery.certificates import cabundle, expiry, pki, rotation
from ktrainer.machinery.certificates import files as certfiles
from ktrainer.machinery.certificates import rotator as certificates
from ktrainer.machinery.serving import connections, tlsdial

MEBIBYTE = 1024 * 1024
OPTIONS = admissionserver.ServerOptions()
POLICY = pki.PkiPolicy("ca", ("a",))


@pytest.mark.parametrize(
    "figure, expected",
    [
        pytest.param(admissionserver.PORT, 9443, id="port"),
        pytest.param(admissionserver.MAX_BODY_BYTES, 7 * MEBIBYTE, id="largest body"),
        pytest.param(admissionserver.DEFAULT_TIMEOUT_SECONDS, 10, id="timeout that is not told"),
        pytest.param(admissionserver.MAX_TIMEOUT_SECONDS, 30, id="longest timeout"),
        pytest.param(admissionserver.DEADLINE_MARGIN_SECONDS, 0.5, id="margin before the caller's timeout"),
        pytest.param(admissionserver.MAX_LARGE_READS, 8, id="large bodies in memory"),
        pytest.param((OPTIONS.drain_seconds, OPTIONS.in_flight_seconds), (10, 30), id="drain"),
        pytest.param(admissionrunner.MAX_CONCURRENT, 128, id="handlers at a time"),
        pytest.param(admissionrunner.LARGE_BODY_BYTES, MEBIBYTE // 4, id="a large body"),
        pytest.param(admissionrunner.MAX_LARGE, 2, id="large bodies decoded at a time"),
        pytest.param(admissionreview.MAX_WARNING_CHARS, 120, id="longest warning"),
        pytest.param(admissionreview.MAX_WARNINGS, 32, id="warnings"),
        pytest.param(connections.KEEPALIVE_SECONDS, 120, id="idle connections"),
        pytest.param(connections.HEADER_SECONDS, 32, id="reading a head"),
        pytest.param(connections.HANDSHAKE_SECONDS, 10, id="shaking hands"),
        pytest.param(connections.SHUTDOWN_SECONDS, 5, id="ending TLS"),
        pytest.param(connections.MAX_CONNECTIONS, 512, id="connections"),
        pytest.param(connections.NEWCOMER_SECONDS, 1, id="newcomers"),
        pytest.param(tlsdial.DIAL_SECONDS, 10, id="readiness dial"),
        pytest.param(webhookmetrics.LATENCY_BUCKETS[-1], 10, id="longest latency"),
        pytest.param(POLICY.authority_lifetime, timedelta(days=3650), id="life of an authority"),
        pytest.param(POLICY.serving_lifetime, timedelta(days=365), id="life of a serving certificate"),
        pytest.param(POLICY.look_ahead, timedelta(days=90), id="renewal before the end"),
        pytest.param(pki.BACKDATED, timedelta(hours=1), id="validity before the making"),
        pytest.param(rotation.MAX_PREVIOUS, 4, id="former authorities in the Secret"),
        pytest.param((cabundle.MAX_AUTHORITIES, cabundle.TRIES), (8, 3), id="bundles"),
        pytest.param(certificates.CHECK_SECONDS, 8, id="looking at the Secret"),
        pytest.param(certificates.SETTLE_SECONDS, 5, id="trust before use"),
        pytest.param(certificates.SETTLED_AGE, timedelta(minutes=1), id="an authority that is not new"),
        pytest.param(certificates.MAX_SKEW, timedelta(minutes=5), id="clocks that agree"),
        pytest.param(certificates.RETRY, BackoffPolicy(0.01, 2, 4, 1), id="retries"),
        pytest.param(certfiles.POLL_SECONDS, 10, id="looking at files"),
        pytest.param(
            (expiry.WARN_BEFORE, expiry.REPEAT_SECONDS), (timedelta(days=30), 86_400), id="warnings of expiry"
        ),
    ],
)
def test_a_figure_should_be_the_agreed_one(figure: object, expected: object) -> None:
    assert figure == expected


def test_idle_connections_should_be_kept_longer_than_api_servers_keep_them() -> None:
    assert connections.KEEPALIVE_SECONDS > 90


def test_warnings_should_never_be_so_many_that_an_api_server_cuts_them() -> None:
    assert admissionreview.MAX_WARNINGS * admissionreview.MAX_WARNING_CHARS <= 4096


def test_damage_should_be_noticed_early_enough_to_be_repaired_within_ten_seconds() -> None:
    assert certificates.CHECK_SECONDS < 10
    assert certificates.RETRY.cap_seconds * (1 + certificates.RETRY.jitter) < 10
