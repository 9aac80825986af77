import pytest

from ktrainer.api.address import address_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8443", ("", 8443)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),  # noqa: S104 - an address that users write
        ("[::1]:8443", ("::1", 8443)),
        ("[localhost]:1", ("localhost", 1)),
        ("localhost:0", ("localhost", 0)),
        ("localhost:", ("localhost", 0)),
        (":https", ("", 443)),
        ("0", None),
    ],
)
def test_an_address_should_be_host_and_port(text: str, address: tuple[str, int] | None) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "8443", "localhost", "::1:8443", ":65536", ":-1", ":x", ":８", "[::1]", "[::1:80", "a]:80", "[[a]]:80"],  # noqa: RUF001 - a digit that is not ASCII
)
def test_anything_else_should_be_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        address_of(text)
