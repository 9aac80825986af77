"""A decoder for JSON from untrusted hands: refuses duplicate keys, deep nesting, NaN and integers that do not fit.

Two readers that disagree on which of two equal keys counts are a way around admission, and depth is a way to exhaust
the stack. Integers of 64 bits stay exact.

What an API server sends is compact, so it equals its own encoding, and that proves the absence of duplicates at two to
three times the cost of decoding alone. Anything else is read a second time, key by key, at about ten times that cost.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

MAX_DEPTH: Final = 100
"""How many lists and maps may lie around a value."""

# Indented, a value stands two blanks to the right for each list or map around it; line breaks in strings are escaped.
_TOO_DEEP: Final = b"\n" + b"  " * (MAX_DEPTH + 1)
_ENCODER_DEPTH: Final = 254
_MAX_INDENTED: Final = 16 * 2**20
"""Bytes that looking at the indented encoding may take, at worst; a document that could take more is walked instead."""


class StrictJsonError(ValueError):
    """The text is not JSON, or is JSON that nobody sends in good faith."""


def decode(body: bytes) -> Any:
    """Decode a document; raises StrictJsonError."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise StrictJsonError(f"not valid JSON: {error}") from error
    if not _is_surely_sound(body, value):
        _check_depth(value)
        json.loads(body.decode(), object_pairs_hook=_check_keys, parse_int=_check_integer)
    return value


def _is_surely_sound(body: bytes, value: Any) -> bool:
    """Whether the cheap proof succeeds: no duplicates, as none are lost by encoding anew, and no depth."""
    lines = 1 + body.count(b",") + 2 * (body.count(b"{") + body.count(b"["))
    if lines * 2 * _ENCODER_DEPTH > _MAX_INDENTED:
        return False
    try:
        if orjson.dumps(value) != _without_html_escapes(body.strip()):
            return False
        return _TOO_DEEP not in orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except orjson.JSONEncodeError:
        # Deeper than the encoder goes.
        return False


def _without_html_escapes(body: bytes) -> bytes:
    """Undo what Go's encoder does to every && in a command, lest it spoil the proof. Strings keep their extent."""
    if rb"\u00" not in body:
        return body
    return body.replace(rb"\u0026", b"&").replace(rb"\u003c", b"<").replace(rb"\u003e", b">")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [item for container in containers for item in _items_of(container)]
    if level:
        raise StrictJsonError(f"nested more than {MAX_DEPTH} levels deep")


def _items_of(container: dict[str, Any] | list[Any]) -> Any:
    return container.values() if isinstance(container, dict) else container


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            raise StrictJsonError(f"duplicate key: {json.dumps(key)}")
        keys.add(key)


def _check_integer(digits: str) -> None:
    # Larger ones were decoded into floats, silently.
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise StrictJsonError(f"integer out of range: {digits[:40]}")
