"""What the exceptions of aiohttp mean to us. The results are chained already, so raise them as they are.

Exceptions that carry a request are not chained: their representation shows its headers, and so the credentials.
"""

from __future__ import annotations

import errno

import aiohttp

from ktrainer.client.errors import (
    CertificateRejected,
    ConnectFailed,
    ConnectionLost,
    NotHttp,
    TransportError,
)


def request_error_of(error: Exception, *, reused: bool) -> TransportError:
    """The error to raise when an answer did not come, or not in full; `reused` is about the connection."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            result: TransportError = CertificateRejected(str(error.certificate_error))
        case aiohttp.ClientHttpProxyError():
            return _unchained(ConnectFailed(f"the proxy refuses: {error.status} {error.message}"))
        case aiohttp.ConnectionTimeoutError():
            result = ConnectFailed("no connection in time")
        case aiohttp.ClientConnectorError():
            result = ConnectFailed(_text(error), refused=error.os_error.errno == errno.ECONNREFUSED)
        case aiohttp.ClientResponseError():
            return _unchained(NotHttp(f"the answer is not HTTP: {error.message}"))
        case aiohttp.ClientConnectionResetError():
            # Raised by writing: the server cannot have seen the whole request.
            result = ConnectionLost(_text(error), sent=False, reused=reused)
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError() | OSError():
            result = ConnectionLost(_text(error), reused=reused)
        case _:
            result = TransportError(_text(error))
    result.__cause__ = error
    return result


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _unchained(error: TransportError) -> TransportError:
    error.__suppress_context__ = True
    return error
