"""Where a server listens: `host:port`, `:port` for all addresses, `0` for nowhere.

The only reader of such texts: what a configuration may say and what a server understands is one grammar. Imports no
server, so that whoever only checks a configuration needs none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

OFF: Final = "0"
"""The address of a server that is switched off."""

# Go knows these without asking the system.
_PORT_NAMES: Final = {"": "0", "http": "80", "https": "443"}


class Address(NamedTuple):
    """Where to listen."""

    host: str | None
    """A name or an IP address; None means everywhere."""
    port: int
    """0 lets the system choose one."""

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_address(text: str) -> Address | None:
    """Read an address such as `:8443`, `localhost:https` or `[::1]:8443`; None for OFF. Raises ValueError."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    number = _PORT_NAMES.get(port, port)
    if not colon or not (number.isascii() and number.isdigit()) or int(number) > 0xFFFF:
        raise ValueError(f"not an address of the form host:port or :port: {text!r}")
    is_bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if is_bracketed else host
    # Of an IPv6 address without brackets nobody can tell where the port begins.
    if "[" in bare or "]" in bare or (":" in bare and not is_bracketed):
        raise ValueError(f"not an address of the form host:port or :port: {text!r}")
    return Address(bare or None, int(number))
