import random
import socket

import pytest

from clusters.ports import LOOPBACK, check_free, free_ports
from controlplane.problem import Problem


def test_free_ports_should_be_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        check_free(port)


def test_free_ports_should_not_be_among_those_that_connections_are_given() -> None:
    # A connection of anybody may have such a port at any moment: a server that starts a little later would not get it.
    with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname()) as connection:
        given = {server.getsockname()[1], connection.getsockname()[1]}
    assert max(free_ports(50)) < min(given)


def test_those_who_ask_at_once_should_get_different_ports_whatever_the_seed() -> None:
    chosen = []
    for _ in range(2):
        random.seed(1)
        chosen.append(free_ports(10))
    assert chosen[0] != chosen[1]


def test_a_busy_port_should_be_one_sentence() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Problem, match=rf"^port {port} of 127\.0\.0\.1 cannot be used \(address already in use\)"):
            check_free(port)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_port_that_is_none_should_be_one_sentence(port: int) -> None:
    with pytest.raises(Problem, match=f"^{port} is no port"):
        check_free(port)
