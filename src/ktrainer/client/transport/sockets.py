"""Sockets that notice when the other side is gone: HTTP/1.1 itself has no way to ask."""

from __future__ import annotations

import socket

OPTIONS = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    # After 30 s of silence the kernel asks the other side, then every 10 s, and gives up when three go unanswered.
    ("IPPROTO_TCP", "TCP_KEEPIDLE", 30),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", 10),
    ("IPPROTO_TCP", "TCP_KEEPCNT", 3),
    # Milliseconds for which what we sent may go unacknowledged; without it the kernel tries for a quarter of an hour.
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", 45_000),
)
"""Level, option and value; options that a system does not have are left out."""


def open_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """Return a new socket with all options set."""
    sock = socket.socket(family, kind, protocol)
    try:
        for level, option, value in OPTIONS:
            if hasattr(socket, option):
                sock.setsockopt(getattr(socket, level), getattr(socket, option), value)
    except OSError:
        sock.close()
        raise
    return sock
