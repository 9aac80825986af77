import errno
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from ktrainer.client.errors import ConnectFailed, ConnectionLost, NotHttp, TransportError
from ktrainer.client.transport.aiohttperrors import request_error_of

HEADERS = CIMultiDictProxy(CIMultiDict({"Authorization": "Bearer secret"}))
KEY: Any = SimpleNamespace(host="api", port=443)
INFO = aiohttp.RequestInfo(URL("https://api"), "GET", HEADERS)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aiohttp.ServerDisconnectedError(), ConnectionLost),
        (aiohttp.ClientOSError(errno.ECONNRESET, "reset"), ConnectionLost),
        (aiohttp.ClientConnectionResetError("Cannot write to closing transport"), ConnectionLost),
        (aiohttp.ClientPayloadError("not completed"), ConnectionLost),
        (ConnectionResetError(errno.ECONNRESET, "reset"), ConnectionLost),
        (RuntimeError("Connection closed."), ConnectionLost),
        (aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "no route")), ConnectFailed),
        (aiohttp.ConnectionTimeoutError("timeout"), ConnectFailed),
        (aiohttp.InvalidURL("x"), TransportError),
    ],
)
def test_an_error_should_be_chained_to_ours(error: Exception, kind: type[TransportError]) -> None:
    result = request_error_of(error, reused=True)
    assert type(result) is kind
    assert result.__cause__ is error
    assert str(result)
    if isinstance(result, ConnectionLost):
        assert (result.sent, result.reused) == (True, True)
    if isinstance(result, ConnectFailed):
        assert not result.refused


def test_a_failed_connection_should_be_described_by_address_and_reason() -> None:
    error = aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "no route"))
    assert str(request_error_of(error, reused=True)) == "api:443: no route"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aiohttp.ClientResponseError(INFO, (), status=400, message="bad status line"), NotHttp),
        (aiohttp.ClientHttpProxyError(INFO, (), status=407, message="who are you"), ConnectFailed),
    ],
)
def test_an_error_that_shows_credentials_should_not_be_chained(error: Exception, kind: type[TransportError]) -> None:
    assert "secret" in repr(error)
    result = request_error_of(error, reused=False)
    assert type(result) is kind
    assert result.__cause__ is None
    assert result.__suppress_context__
    assert "secret" not in str(result)
