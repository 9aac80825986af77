import socket

import pytest

from ktrainer.client.transport.sockets import OPTIONS, open_socket


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_socket_should_have_all_options(family: int) -> None:
    with open_socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
        for level, option, value in OPTIONS:
            assert sock.getsockopt(getattr(socket, level), getattr(socket, option)) == value


def test_a_socket_that_cannot_have_them_should_not_be_left_open() -> None:
    # An unclosed socket would be a ResourceWarning, which is an error here.
    with pytest.raises(OSError, match="not supported"):
        open_socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
