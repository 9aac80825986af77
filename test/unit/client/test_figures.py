"""The figures of the client in one table, so that a change of one shows as a change of this table."""

import pytest

from ktrainer.client import client, connect, discovery, retry, throttle, watch
from ktrainer.client.credentials import credentials, execcredentials, execplugin
from ktrainer.client.events import body as eventbody
from ktrainer.client.events import correlator as eventcorrelator
from ktrainer.client.events import recorder
from ktrainer.client.transport import aiohttptransport, sockets, tls


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        pytest.param(retry.MAX_TRIES, 10, id="tries of a request"),
        pytest.param(retry.LOST_SECONDS, 1.0, id="wait after a lost connection"),
        pytest.param(retry.RETRY_AFTER_MAX_SECONDS, 60.0, id="longest wait that a server may ask for"),
        pytest.param(retry.JITTER, 0.1, id="jitter of waits"),
        pytest.param(client.READ_SECONDS, 60.0, id="time limit of reads"),
        pytest.param(client.WRITE_SECONDS, 30.0, id="time limit of writes"),
        pytest.param(client.FENCED_WRITE_SECONDS, 5.0, id="time limit of writes behind the fence"),
        pytest.param(client.WATCH_GRACE_SECONDS, 30.0, id="time that a watch may overrun"),
        pytest.param(connect.LEASE_WAIT_SECONDS, 1.0, id="wait of a request about the lease"),
        pytest.param(connect.LEASE_SECONDS, 5.0, id="time limit of requests about the lease"),
        pytest.param(connect.REQUEST_CONNECTIONS, 32, id="connections for requests"),
        pytest.param(connect.WATCH_CONNECTIONS, 0, id="connections for watches, without limit"),
        pytest.param(connect.LEASE_CONNECTIONS, 2, id="connections for the lease"),
        pytest.param(aiohttptransport.CONNECT_SECONDS, 10.0, id="time limit of a connection with TLS"),
        pytest.param(aiohttptransport.KEEPALIVE_SECONDS, 15.0, id="time that connections are kept"),
        pytest.param(aiohttptransport.OPEN_SECONDS, 60.0, id="time limit of opening a stream"),
        pytest.param(aiohttptransport.LOOK_SECONDS, 5.0, id="time between looks after a quiet stream"),
        pytest.param(
            {option: value for _, option, value in sockets.OPTIONS},
            {
                "SO_KEEPALIVE": 1,
                "TCP_KEEPIDLE": 30,
                "TCP_KEEPINTVL": 10,
                "TCP_KEEPCNT": 3,
                "TCP_USER_TIMEOUT": 45_000,
            },
            id="options of sockets",
        ),
        pytest.param(watch.LINE_LIMIT, 8 * 1024 * 1024, id="longest line of a watch"),
        pytest.param(throttle.NOTABLE_SECONDS, 0.05, id="wait that is logged for debugging"),
        pytest.param(throttle.LONG_SECONDS, 1.0, id="wait that is logged"),
        pytest.param(credentials.REREAD_SECONDS, 50.0, id="age of a token"),
        pytest.param(tls.RELOAD_SECONDS, 300.0, id="age of certificates"),
        pytest.param(execcredentials.RENEW_SHARE, 0.8, id="share of a grant's life before it is renewed"),
        pytest.param(execcredentials.REST_SECONDS, 10.0, id="time between runs of a plugin"),
        pytest.param(execplugin.RUN_SECONDS, 60.0, id="time limit of a plugin"),
        pytest.param(discovery.REFRESH_SECONDS, 10.0, id="age of what is not there"),
        pytest.param(recorder.QUEUE_LENGTH, 1000, id="events that wait"),
        pytest.param(recorder.SENDERS, 8, id="events sent at once"),
        pytest.param(recorder.MAX_TRIES, 12, id="tries of an event"),
        pytest.param(recorder.RETRY_SECONDS, 10.0, id="wait between tries of an event"),
        pytest.param(recorder.STOP_SECONDS, 2.0, id="sending events at the end"),
        pytest.param(eventcorrelator.SERIES_SECONDS, 360.0, id="quiet that ends a series"),
        pytest.param(eventcorrelator.REFRESH_SECONDS, 1800.0, id="time between counts of a series"),
        pytest.param(eventcorrelator.BURST, 25, id="events of an object at once"),
        pytest.param(eventcorrelator.REFILL_SECONDS, 300.0, id="time until one more"),
        pytest.param(eventcorrelator.REMEMBERED, 4096, id="objects with events that are kept in mind"),
        pytest.param(eventbody.NOTE_BYTES, 1024, id="longest note"),
        pytest.param(eventbody.WORD_CHARACTERS, 128, id="longest reason and action"),
    ],
)
def test_figures_should_be_as_agreed(figure: object, value: object) -> None:
    assert figure == value
