"""Free ports on loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from controlplane.problem import Problem

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return different ports that nobody listens on now.

    Another program may take one before it is used: the component then ends, and `up` says so.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def check_free(port: int) -> None:
    """Raise Problem where a port that the user asked for cannot be listened on."""
    if not 1 <= port <= 65535:
        raise Problem(f"{port} is no port: choose one from 1 to 65535, or none at all to get a free one.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise Problem(
                f"port {port} of {LOOPBACK} cannot be used ({reason}): choose another, or none at all."
            ) from error
