"""The parts of a JSON document without recursion, for those that are nested too deep for a decoder.

Much slower than a decoder and only asked when one has given up, so that one monstrous object does not hide the others.
Expects well-formed JSON; of anything else the parts are wrong, which whoever decodes them will notice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

TOO_DEEP: Final = b'"nested too deeply"'
"""What stands where something was that no decoder can read."""

# A string without an end takes all the rest: looking for one again from each quote in it would take for ever.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{},]', re.DOTALL)
_MEMBER = re.compile(rb'\s*"([^"\\]*)"\s*:\s*(.*)', re.DOTALL)


def elements_of(document: bytes) -> Iterator[bytes]:
    """The elements of an array, or the `"name": value` pairs of an object, each as the bytes between two commas."""
    depth, begin = 0, 0
    for token in _TOKEN.finditer(document):
        text = token.group()
        if text in b"[{":
            depth += 1
            if depth == 1:
                begin = token.end()
        elif text in b"]}" or text == b",":
            if depth == 1:
                element = document[begin : token.start()].strip()
                begin = token.end()
                if element:
                    yield element
            if text != b",":
                depth -= 1


def members_of(document: bytes) -> dict[str, bytes]:
    """The members of an object by name; those whose names have escapes in them are left out."""
    found = (_MEMBER.match(pair) for pair in elements_of(document))
    return {member[1].decode(errors="replace"): member[2] for member in found if member}


def flattened(document: bytes) -> bytes:
    """An object with a word in place of those of its members that are nested too deep for a decoder."""
    members = (b'"%b":%b' % (name.encode(), _readable(value)) for name, value in members_of(document).items())
    return b"{" + b",".join(members) + b"}"


def _readable(value: bytes) -> bytes:
    try:
        msgspec.json.decode(value, type=msgspec.Raw)
    except RecursionError:
        return TOO_DEEP
    except ValueError:
        # Whoever decodes the whole will say so.
        pass
    return value
