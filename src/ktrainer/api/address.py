"""Where a server listens: `host:port`, `:port` for all addresses, `0` for nowhere."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

# Go knows these without asking the system.
_PORT_NAMES: Final = {"": "0", "http": "80", "https": "443"}


def address_of(text: str) -> tuple[str, int] | None:
    """Host and port of an address; an empty host means all of them. None for `0`: the server is switched off.

    Raises ValueError for anything else.
    """
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    number = _PORT_NAMES.get(port, port)
    if not colon or not (number.isascii() and number.isdigit()) or int(number) > 65535:
        raise ValueError(f"not an address: {text!r}")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if "[" in bare or "]" in bare or (":" in bare and not bracketed):
        raise ValueError(f"not an address: {text!r}")
    return bare, int(number)


def _check(text: str) -> str:
    try:
        address_of(text)
    except ValueError:
        raise PydanticCustomError("address", "must be host:port, :port, or 0 to switch the server off")
    return text


Address: TypeAlias = Annotated[str, AfterValidator(_check)]
"""The type of an address field; `address_of` takes it apart."""
