"""Failures to get an answer from an API server at all, as exceptions.

    TransportError
    ├── ConnectFailed          no connection: nothing was sent
    │   └── CertificateRejected    the server's certificate is not to be trusted
    ├── CredentialsFailed      nothing to authenticate with: nothing was sent
    ├── ConnectionLost         the connection ended before the answer did; the request may have been carried out
    ├── RequestTimeout         no answer in time; the request may have been carried out
    ├── NotHttp                the answer is not HTTP
    └── StreamBroken           a stream ended other than by its end
        ├── StreamIdle         nothing came for too long: the peer is taken for dead
        ├── StreamExpired      the stream outlived the time that the server was asked to limit it to
        └── LineTooLong        a line that no event can be

Answers other than success are `ktrainer.kube.errors.ApiError`. A FenceClosed is neither: nobody was asked.
"""

from __future__ import annotations


class TransportError(Exception):
    """There is no answer, or no whole one."""


class ConnectFailed(TransportError):
    """No connection could be made, so the request never left."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        """Whether the host is there and nobody listens, as while a server restarts."""


class CertificateRejected(ConnectFailed):
    """The server's certificate was not signed by an authority that we trust, or is not for this server."""


class CredentialsFailed(TransportError):
    """The credentials could not be obtained, so the request never left."""


class ConnectionLost(TransportError):
    """The connection ended before the answer did."""

    def __init__(self, message: str, *, sent: bool = True, reused: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        """Whether the server may have seen the whole request, and so may have carried it out."""
        self.reused = reused
        """Whether the connection had served a request before: servers close idle ones, and we may notice too late."""


class RequestTimeout(TransportError):
    """There was no whole answer in time."""


class NotHttp(TransportError):
    """What answers does not speak HTTP."""


class StreamBroken(TransportError):
    """A stream was cut off; what came before is good."""


class StreamIdle(StreamBroken):
    """Nothing came for longer than a living peer is ever silent."""


class StreamExpired(StreamBroken):
    """The stream went on for longer than the server was asked to let it."""


class LineTooLong(StreamBroken):
    """A line longer than any event; what follows cannot be told apart any more."""


class FenceClosed(Exception):
    """The fence did not let a write pass, so it never left; whoever makes a fence raises this."""
