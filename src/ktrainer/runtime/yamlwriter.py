"""Writes JSON values as YAML that people like to read and every parser reads alike.

Block style, lists not indented further, texts of several lines as such. A string stays without quotes only where no
version of YAML could take it for anything else. The order of keys is the order given.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+=-]*(:[A-Za-z0-9_./@+=-]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})
_WORD: Final = 64
"""Shorter texts are remembered."""
_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def to_yaml(value: Any) -> str:
    """The value as a document, without the line that begins one."""
    lines: list[str] = []
    _write(lines, value, "", "")
    return "".join(lines)


def _write(lines: list[str], value: Any, head: str, indent: str) -> None:
    """Add the lines of a value; `head` is what its first line begins with, in place of the indent."""
    if value and isinstance(value, dict):
        inner = indent + "  "
        for key, item in value.items():
            start = f"{head or indent}{_word(key) if len(key) < _WORD else _text(key)}:"
            head = ""
            if item and isinstance(item, dict):
                lines.append(f"{start}\n")
                _write(lines, item, "", inner)
            elif item and isinstance(item, list):
                lines.append(f"{start}\n")
                _write(lines, item, "", indent)
            else:
                _write_scalar(lines, item, f"{start} ", inner)
    elif value and isinstance(value, list):
        inner = indent + "  "
        for item in value:
            _write(lines, item, f"{head or indent}- ", inner)
            head = ""
    else:
        _write_scalar(lines, value, head or indent, indent or "  ")


def _write_scalar(lines: list[str], value: Any, head: str, indent: str) -> None:
    if isinstance(value, str) and "\n" in value and _is_block(value):
        _write_block(lines, value, head, indent)
    else:
        lines.append(f"{head}{_scalar(value)}\n")


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _word(value) if len(value) < _WORD else _text(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    text = repr(value)
    # A number with an exponent but without a point is none to old parsers.
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escape, text)) + '"'


# Keys, and most values, are the same few hundred words again and again.
_word = lru_cache(4096)(_text)


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_block(text: str) -> bool:
    """Whether a text of several lines reads well as such, and keeps its content that way."""
    lines = text.split("\n")
    return (
        lines[0] != ""
        and not lines[0].startswith((" ", "\t"))
        and all(not line or line.replace("\t", "").isprintable() for line in lines)
    )


def _write_block(lines: list[str], text: str, head: str, indent: str) -> None:
    body = text.rstrip("\n")
    trailing = len(text) - len(body)
    lines.append(f"{head}|{'-' if not trailing else '' if trailing == 1 else '+'}\n")
    lines += (f"{indent}{line}\n" if line else "\n" for line in body.split("\n"))
    lines += ["\n"] * (trailing - 1)
