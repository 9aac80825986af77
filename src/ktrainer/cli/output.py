"""Writes what a command has to show."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper


def write_output(text: str) -> bool:
    """Write to the output, to the last byte; return whether that went well, and tell why where it did not."""
    problem = _write(text)
    if problem:
        print(f"ktrainer: the output cannot be written: {problem}", file=sys.stderr)
    return not problem


def _write(text: str) -> str:
    """Return what is wrong with the output, or nothing."""
    if not text:
        return ""
    if sys.stdout is None:
        return "it is closed"
    try:
        if isinstance(sys.stdout, TextIOWrapper):
            # Whatever the locale says: it is for kubectl as well as for people.
            sys.stdout.reconfigure(encoding="utf-8")
        print(text, end="", flush=True)
    except (OSError, ValueError) as error:
        # What is still in the buffer would be tried again at the end of the process, and fail again.
        with suppress(OSError, ValueError), open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return getattr(error, "strerror", None) or str(error)
    return ""
