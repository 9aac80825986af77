"""Writes JSON values as YAML that people like to read and every parser reads alike.

Block style, lists not indented further, texts of several lines as such. A string stays without quotes only where no
version of YAML could take it for anything else. The order of keys is the order given.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+=-]*(:[A-Za-z0-9_./@+=-]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def to_yaml(value: Any) -> str:
    """The value as a document, without the line that begins one."""
    return "".join(_lines(value, ""))


def _lines(value: Any, indent: str) -> Iterator[str]:
    """The lines of a value that stands by itself."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _entry(f"{indent}{_text(str(key))}:", item, indent)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _item(item, indent)
    else:
        yield f"{indent}{_scalar(value)}\n"


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    """The lines of a key and its value."""
    if value and isinstance(value, dict):
        yield f"{head}\n"
        yield from _lines(value, indent + "  ")
    elif value and isinstance(value, list):
        yield f"{head}\n"
        yield from _lines(value, indent)
    elif isinstance(value, str) and _is_block(value):
        yield from _block(head, value, indent + "  ")
    else:
        yield f"{head} {_scalar(value)}\n"


def _item(value: Any, indent: str) -> Iterator[str]:
    """The lines of an item of a list: those of its value, with a hyphen in the first."""
    if isinstance(value, str) and _is_block(value):
        yield from _block(f"{indent}-", value, indent + "  ")
        return
    inner = _lines(value, indent + "  ")
    first = next(inner)
    yield f"{indent}- {first[len(indent) + 2 :]}"
    yield from inner


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return repr(value)


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    """Whether a text reads well line by line, and keeps its content that way."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and lines[0] != ""
        and not lines[0].startswith(" ")
        and all(line.isprintable() or not line for line in (each.replace("\t", "") for each in lines))
        and any(line.strip() for line in lines)
    )


def _block(head: str, text: str, indent: str) -> Iterator[str]:
    body = text.rstrip("\n")
    trailing = len(text) - len(body)
    yield f"{head} |{'-' if not trailing else '' if trailing == 1 else '+'}\n"
    for line in body.split("\n"):
        yield f"{indent}{line}\n" if line else "\n"
    for _ in range(trailing - 1):
        yield "\n"
