"""Which URLs and names of hosts can be used at all.

A name that cannot be looked up by its very form, as with two dots in a row, fails only when it is used, and then says
nothing of where it comes from. So it is checked where it is read.
"""

from __future__ import annotations

from urllib.parse import urlsplit


def is_url(text: str) -> bool:
    """Whether this is an http or https URL of a host, with no query and nothing that would end a line."""
    try:
        url = urlsplit(text)
        has_port = url.port is None or url.port > 0
    except ValueError:
        return False
    is_plain = not (url.query or url.fragment or " " in text)
    return url.scheme in {"http", "https"} and has_port and is_plain and text.isprintable() and is_host(url.hostname)


def is_host(name: str | None) -> bool:
    """Whether this may be the name or the address of a host."""
    try:
        return bool(name) and str(name).isprintable() and bool(str(name).encode("idna"))
    except UnicodeError:
        return False
