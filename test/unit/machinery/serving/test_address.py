import subprocess
import sys

import pytest

from ktrainer.machinery.serving.address import Address, parse_address


@pytest.mark.parametrize(
    "text, address",
    [
        (":8443", Address(None, 8443)),
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),  # noqa: S104 - an address that users write
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:443", Address("::1", 443)),
        ("[::]:443", Address("::", 443)),
        ("0", None),
    ],
)
def test_an_address_should_be_host_and_port(text: str, address: Address | None) -> None:
    assert parse_address(text) == address
    if address is not None:
        assert str(address) == text


@pytest.mark.parametrize(
    "text, address",
    [
        ("[localhost]:1", Address("localhost", 1)),
        ("localhost:", Address("localhost", 0)),
        (":", Address(None, 0)),
        (":http", Address(None, 80)),
        ("localhost:http", Address("localhost", 80)),
        (":https", Address(None, 443)),
    ],
)
def test_an_address_may_be_written_in_ways_that_go_knows(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "8443", "localhost", "::1", "::1:80", "::1:8443", ":65536", ":-1", ":x", ":8 0", ":²", ":８"),  # noqa: RUF001 - a digit that is not ASCII
        *("[::1]", "[::1:80", "a]:80", "[[a]]:80"),
    ],
)
def test_anything_else_should_be_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        parse_address(text)


def test_reading_an_address_should_need_no_server() -> None:
    program = "import sys, ktrainer.machinery.serving.address; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "asyncio", "prometheus_client", "structlog"} & set(loaded)
