"""Logs what an API server warns about, such as deprecated fields: every text once, since it comes with every answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXTS = 1000
"""How many texts are remembered; beyond that the oldest may be logged again."""

_MAX_LENGTH = 2048
_WARNING = re.compile(r'\s*299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")

_log = structlog.get_logger(__name__)


class WarningLog:
    """The warnings of one server that have been logged. Plain and atomic."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}
        """The texts in the order in which they came, at most MAX_TEXTS."""

    def note(self, headers: Mapping[str, str], path: str) -> None:
        """Log the warnings of an answer that are new."""
        if "Warning" not in headers:
            return
        for name, value in headers.items():
            if name.lower() == "warning":
                for match in _WARNING.finditer(value):
                    self._log_once(_CONTROL.sub(" ", _ESCAPED.sub(r"\1", match[1]))[:_MAX_LENGTH], path)

    def _log_once(self, text: str, path: str) -> None:
        if text in self._seen:
            return
        if len(self._seen) >= MAX_TEXTS:
            del self._seen[next(iter(self._seen))]
        self._seen[text] = None
        _log.warning("the API server warns", warning=text, path=path.partition("?")[0])
