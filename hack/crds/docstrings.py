"""The docstrings below the attributes of a class: what its author says of each field."""

from __future__ import annotations

import ast
import inspect
import sys
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOREIGN: Final = frozenset({*BaseModel.__mro__, *StrEnum.__mro__})


def attribute_docstrings_of(class_: type) -> dict[str, str]:
    """The docstrings by attribute, those of its parents included, each on one line."""
    found: dict[str, str] = {}
    for parent in reversed(class_.__mro__):
        if parent not in _FOREIGN:
            found |= _docstrings_of(parent.__module__)[parent.__name__]
    return found


def on_one_line(docstring: str | None) -> str:
    """The text of a docstring without its line breaks."""
    return " ".join((docstring or "").split())


@cache
def _docstrings_of(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_attributes_of(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _attributes_of(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in zip(node.body, node.body[1:], strict=False):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, on_one_line(text)
