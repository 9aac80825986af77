"""The log of the program: structured, a line for each entry, as JSON for machines or as text for people.

Whatever comes in, a line stays a line, secrets stay out, and no text is longer than needed to understand it. Nor does
any of it make a call fail: whoever logs has other things to do. What Python's own logging and its warnings have to say
comes here, too.
"""

from __future__ import annotations

import logging
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson
import structlog
from structlog.contextvars import merge_contextvars
from structlog.processors import TimeStamper, add_log_level, format_exc_info

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from structlog.typing import Processor, WrappedLogger

MAX_CHARS: Final = 2048
"""The length of a text in the log."""

MAX_TRACEBACK_CHARS: Final = 16_384

MAX_DEPTH: Final = 16
"""How deep lists and objects may be nested; what is deeper, or contains itself, is left out."""

REDACTED: Final = "<redacted>"

_SECRET_FIELDS: Final = frozenset(
    {"authorization", "token", "data", "stringdata", "env", "cabundle", "kubeconfig", "password", "body"}
)
_SECRETS: Final = re.compile(
    r"(?<=bearer )[^\s\"',]+"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.IGNORECASE | re.DOTALL,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TRACEBACK: Final = "exception"
_INTEGER_BITS: Final = 63
"""The size of numbers that can be written as JSON."""


class Format(StrEnum):
    """How entries are written."""

    JSON = "json"
    CONSOLE = "console"


class Level(StrEnum):
    """The least important entries that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logging(level: Level, form: Format, output: TextIO | None = None) -> None:
    """Set up the log of this process, by default on standard error; call it once, before anything is logged."""
    file = output or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    factory: Any = structlog.WriteLoggerFactory(file)
    structlog.configure(
        processors=_processors(form),
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_Forwarder()], level=max(threshold, logging.INFO), force=True)
    logging.captureWarnings(capture=True)


def configure_warnings() -> None:
    """Set up the log of a command whose output others read: as text, on standard error, and no more than warnings."""
    structlog.configure(
        processors=_processors(Format.CONSOLE),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
    )


def _processors(form: Format) -> list[Processor]:
    return [
        merge_contextvars,
        add_log_level,
        TimeStamper(fmt="iso", utc=True),
        format_exc_info,
        clean,
        render_json if form is Format.JSON else render_text,
    ]


def clean(logger: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take secrets out of an entry, cut what is too long, and spell out what is no JSON."""
    return {_valid(key): _cleaned(key, value) for key, value in entry.items()}


def render_json(logger: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> str:
    """Write an entry as a JSON object on a line of its own."""
    return _json(entry)


def render_text(logger: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> str:
    """Write an entry as a line for people; a traceback follows it, indented, so that it is not taken for entries."""
    rest = dict(entry)
    time, level, event = (rest.pop(key, "") for key in ("timestamp", "level", "event"))
    traceback = str(rest.pop(_TRACEBACK, ""))
    fields = "".join(f" {key}={_spelled(value)}" for key, value in rest.items())
    lines = [f"{time} {str(level).upper():7} {_escaped(str(event))}{fields}"]
    lines += [f"    {_escaped(line)}" for line in traceback.splitlines()]
    return "\n".join(lines)


def _cleaned(key: str, value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        return "…"
    if key.lower() in _SECRET_FIELDS:
        return REDACTED
    match value:
        case str():
            limit = MAX_TRACEBACK_CHARS if key == _TRACEBACK else MAX_CHARS
            return _valid(_cut(_SECRETS.sub(REDACTED, value), limit))
        case bool() | float() | None:
            return value
        case int():
            return value if value.bit_length() <= _INTEGER_BITS else hex(value)
        case dict():
            return {_valid(_said(name)): _cleaned(_said(name), item, depth + 1) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_cleaned("", item, depth + 1) for item in value]
        case _:
            return _cleaned(key, _said(value))


def _said(value: object) -> str:
    """What an object says about itself; some fail even at that."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _valid(text: str) -> str:
    """The text without lone surrogates, which decoders leave where the bytes were no UTF-8, as in HTTP headers."""
    return text.encode("utf-8", "replace").decode()


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more)"


def _spelled(value: Any) -> str:
    if not isinstance(value, str):
        return _json(value)
    is_plain = value and not any(character in value for character in ' ="')
    return _escaped(value) if is_plain else f'"{_escaped(value)}"'


def _json(value: Any) -> str:
    return _escaped(orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode())


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class _Forwarder(logging.Handler):
    """Hands on what others log in Python's own way."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:
            message = _said(record.msg)
        log = structlog.get_logger(record.name)
        log.log(record.levelno, message.rstrip(), logger=record.name, exc_info=record.exc_info or None)
