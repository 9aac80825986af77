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
            # Its own text has the address of a Python object in it, and so is never the same twice.
            text = f"{error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
            result = ConnectFailed(text, refused=error.os_error.errno == errno.ECONNREFUSED)
        case aiohttp.ClientResponseError():
            return _unchained(NotHttp(f"the answer is not HTTP: {error.message}"))
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError() | OSError() | RuntimeError():
            # How much of the request has left is not to be learned, so it counts as sent. A RuntimeError is what
            # reading from a connection that has ended otherwise gives.
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
