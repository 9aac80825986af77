"""YAML as Kubernetes reads it: whatever JSON can say, and nothing else.

A time stays a string, a number in base sixty is none, keys are strings, and a key that is given twice is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)


class YamlError(ValueError):
    """The text is no YAML, or says something that JSON cannot; the message tells where."""


def parse_documents(text: str) -> Iterator[Any]:
    """Read a stream of documents one by one; a document without content is None. Raises YamlError."""
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(" ".join(str(error).split())) from error


_Unfit = yaml.constructor.ConstructorError


class _Loader(yaml.CSafeLoader):
    """Knows null, true and false, numbers, strings, lists and maps."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way to set them
        first: [(tag, form) for tag, form in resolvers if tag.endswith((":null", ":bool", ":merge"))]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node).replace("_", "")
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return int(text, 8 if octal else 0)

    def construct_float(self, node: yaml.ScalarNode) -> float:
        return float(self.construct_scalar(node))

    def construct_map(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        made: dict[str, Any] = {}
        yield made
        self._refuse_duplicates(node)
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            made[self._key_of(key_node)] = self.construct_object(value_node, deep=True)

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        # Before the merge of what `<<` names, which may well be overridden.
        seen = set()
        for key_node in (key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"):
            key = self._key_of(key_node)
            if key in seen:
                raise _Unfit(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)

    def _key_of(self, node: yaml.Node) -> str:
        value = self.construct_object(node, deep=True)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return str(value)
        raise _Unfit(problem="a key must be a string", problem_mark=node.start_mark)


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_float)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_map)
