"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from typing import Final

from controlplane.problem import Problem

LOOPBACK: Final = "127.0.0.1"

_SERVED: Final = range(20_000, 30_000)
"""Below the ports that connections are given, of which there are many, and those that clusters take for nodes."""
_TRIES: Final = 100
_CHANCE: Final = random.SystemRandom()
"""Not the one that tests seed: all of them would choose the same."""


def free_ports(count: int) -> list[int]:
    """Return different ports that nobody listens on now, and that no connection is given as its own.

    Another program may still take one before it is used: the component then ends, and `up` says so.
    """
    with ExitStack() as stack:
        return [stack.enter_context(_bound_socket()).getsockname()[1] for _ in range(count)]


def _bound_socket() -> socket.socket:
    """A socket on a free port, chosen by chance so that two who ask at once get different ones."""
    for port in _CHANCE.sample(_SERVED, _TRIES):
        candidate = socket.socket()
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            candidate.close()
        else:
            return candidate
    raise Problem(f"none of {_TRIES} ports of {LOOPBACK} is free: end programs that listen there.")


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
