"""YAML as Kubernetes reads and writes it: whatever JSON can say, and nothing else.

A time stays a string, a number in base sixty is none, keys are strings, and a key that is given twice is an error.
What is written is read back as it was, by this module and by Kubernetes: PyYAML alone would leave 1e3 without quotes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)\Z", re.ASCII)
_BOOL = re.compile(r"(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)


class YamlError(ValueError):
    """The text is no YAML, or says something that JSON cannot; the message tells where."""


def parse_documents(text: str) -> Iterator[Any]:
    """Read a stream of documents one by one; a document without content is None. Raises YamlError."""
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(" ".join(str(error).split())) from error


def render_document(value: Any) -> str:
    """Write a JSON value as a document of YAML, in the order of its keys."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=2**16)


_Unfit = yaml.constructor.ConstructorError


class _Loader(yaml.CSafeLoader):
    """Knows null, true and false, numbers, strings, lists and maps."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way to set them
        first: [(tag, form) for tag, form in resolvers if tag.endswith((":null", ":merge"))]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012 - the same
        tag: constructor
        for tag, constructor in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.endswith((":null", ":bool", ":str"))
    }
    bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012 - the same

    def construct_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node).replace("_", "")
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return int(text, 8 if octal else 0)

    def construct_float(self, node: yaml.ScalarNode) -> float:
        return float(self.construct_scalar(node))

    def construct_list(self, node: yaml.SequenceNode) -> list[Any]:
        # All at once, so that a list inside itself is refused.
        return self.construct_sequence(node, deep=True)

    def construct_map(self, node: yaml.MappingNode) -> dict[str, Any]:
        self._refuse_duplicates(node)
        self.flatten_mapping(node)
        return {self._key_of(key): self.construct_object(value, deep=True) for key, value in node.value}

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


class _Dumper(yaml.CSafeDumper):
    """Puts quotes around every string that some reader could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        """Whether a value must be written out where it occurs: always, since JSON knows no references."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Scripts are for reading; where the literal form cannot hold a text, the emitter quotes it after all.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("yYnNtTfFoO"))
    _class.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
    _class.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_float)
_Loader.add_constructor("tag:yaml.org,2002:seq", _Loader.construct_list)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_map)
