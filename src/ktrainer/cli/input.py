"""Reads the files of a command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ktrainer.api.yamltext import YamlError, parse_documents
from ktrainer.app.documents import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class InputError(Exception):
    """A file that cannot be read; the message tells which and why."""


def read_documents(files: Iterable[str]) -> list[Document]:
    """All objects in the files, in their order; those of lists, such as `kind: List`, one by one. Raises InputError."""
    return [document for file in files for document in _read(file)]


def problem_of(error: OSError | ValueError) -> str:
    """Why a file cannot be read, without its name: whoever tells it has told that."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return getattr(error, "strerror", None) or str(error)


def _read(file: str) -> Iterator[Document]:
    number = 0
    try:
        for value in parse_documents(_text(file)):
            number += 1
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InputError(f"{file}#{number}: not an object")
            yield from _objects(file, number, value)
    except YamlError as error:
        raise InputError(f"{file}#{number + 1}: {error}") from error


def _objects(file: str, number: int, value: dict[str, object]) -> Iterator[Document]:
    kind, items = value.get("kind"), value.get("items")
    # A list is kubectl's own, or an API server's, such as TrainJobList.
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield Document(file, number, value)
        return
    for item in items:
        if not isinstance(item, dict):
            raise InputError(f"{file}#{number}: an item of the list is not an object")
        yield from _objects(file, number, item)


def _text(file: str) -> str:
    if file == "-" and sys.stdin is None:
        raise InputError("-: the input is closed")
    try:
        if file == "-":
            # Its own encoding is that of the locale, which says nothing about the objects of a cluster.
            source = getattr(sys.stdin, "buffer", None)
            return sys.stdin.read() if source is None else str(source.read(), encoding="utf-8-sig")
        # Some editors begin a file with a mark that says no more than that it is UTF-8.
        with open(file, encoding="utf-8-sig") as opened:
            return opened.read()
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {problem_of(error)}") from error
