"""What is wrong with a field, in the words that users of kubectl know.

    spec.jobs[0].image: Invalid value: "x y": must not contain blanks

Validation collects these in an `ErrorList` and returns it; nothing here is raised.

Parity: k8s.io/apimachinery/pkg/util/validation/field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Path:
    """Where a field is, from the root of its object."""

    text: str = ""

    def child(self, *names: str) -> Path:
        """The path of a field below this one."""
        return Path(".".join((self.text, *names) if self.text else names))

    def index(self, position: int) -> Path:
        """The path of an item of this list."""
        return Path(f"{self.text}[{position}]")

    def key(self, key: str) -> Path:
        """The path of a value of this map."""
        return Path(f"{self.text}[{key}]")

    def __str__(self) -> str:
        return self.text


class Kind(Enum):
    """The kinds of field errors; a value is the cause's reason in a Status."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    FORBIDDEN = "FieldValueForbidden"
    NOT_FOUND = "FieldValueNotFound"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


_TITLES: Final = {
    Kind.INVALID: "Invalid value",
    Kind.REQUIRED: "Required value",
    Kind.FORBIDDEN: "Forbidden",
    Kind.NOT_FOUND: "Not found",
    Kind.DUPLICATE: "Duplicate value",
    Kind.NOT_SUPPORTED: "Unsupported value",
    Kind.TOO_LONG: "Too long",
    Kind.TOO_MANY: "Too many",
}
_WITHOUT_VALUE: Final = frozenset({Kind.REQUIRED, Kind.FORBIDDEN, Kind.TOO_LONG})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with one field."""

    kind: Kind
    path: Path
    value: object = None
    detail: str = ""

    @property
    def body(self) -> str:
        """The error without its path, as a Status puts it into a cause."""
        text = _TITLES[self.kind]
        if self.kind not in _WITHOUT_VALUE:
            text += f": {_spell(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}" if self.path.text else self.body


ErrorList = list[FieldError]


def invalid(path: Path, value: object, detail: str) -> FieldError:
    """The value is malformed or out of bounds."""
    return FieldError(Kind.INVALID, path, value, detail)


def required(path: Path, detail: str = "") -> FieldError:
    """The value is missing."""
    return FieldError(Kind.REQUIRED, path, detail=detail)


def forbidden(path: Path, detail: str) -> FieldError:
    """The field must not be set here, whatever its value."""
    return FieldError(Kind.FORBIDDEN, path, detail=detail)


def not_found(path: Path, value: object) -> FieldError:
    """The value names something that does not exist."""
    return FieldError(Kind.NOT_FOUND, path, value)


def duplicate(path: Path, value: object) -> FieldError:
    """The value must be unique, and is not."""
    return FieldError(Kind.DUPLICATE, path, value)


def not_supported(path: Path, value: object, supported: Iterable[str]) -> FieldError:
    """The value is none of those that exist; they are listed in the order given."""
    names = ", ".join(map(_quote, supported))
    return FieldError(Kind.NOT_SUPPORTED, path, value, f"supported values: {names}" if names else "")


def too_long(path: Path, max_bytes: int) -> FieldError:
    """The value has too many bytes to be repeated."""
    return FieldError(Kind.TOO_LONG, path, detail=f"may not be more than {counted(max_bytes, 'byte')}")


def too_many(path: Path, actual: int, max_items: int) -> FieldError:
    """The list has too many items."""
    return FieldError(Kind.TOO_MANY, path, actual, f"must have at most {counted(max_items, 'item')}")


def message_of(errors: Iterable[FieldError]) -> str:
    """One text for a denial: the error alone, or all of them once each in brackets; empty without errors."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 item, 2 items."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _spell(value: object) -> str:
    if isinstance(value, str):
        return _quote(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return text.translate(_JSON_ESCAPES)


# Inside JSON, Go escapes what HTML could mistake for a tag and JavaScript for the end of a line.
_JSON_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "&<>\u2028\u2029"})
_ESCAPES: Final = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def _quote(text: str) -> str:
    """Quote a string as Go does: what cannot be printed is escaped, so a log line stays one line."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(char: str) -> str:
    if char in {'"', "\\"}:
        return "\\" + char
    if char.isprintable():
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
