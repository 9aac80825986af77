"""YAML as Kubernetes reads it: whatever JSON can say, and nothing else.

A time stays a string, a number in base sixty is none, keys are strings, and a key that is given twice is an error.

Nearly all JSON is YAML, but not to our parser: it knows no characters in two halves, as encoders of JSON escape what is
beyond 16 bits, and wants a line between two documents. A document that may be JSON is therefore read as such first.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from ktrainer.kube import strictjson

if TYPE_CHECKING:
    from collections.abc import Iterator

_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)\Z", re.ASCII)
_BOOL = re.compile(r"(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)

# The line that begins a document, with the directives before it: no text of YAML or JSON can hold such a line.
_MARKER = re.compile(r"^(?:%.*\n)*---(?=\s|\Z)", re.MULTILINE)
_JSON_START = re.compile(r"(?:\A|^---)\s*[{\[]", re.MULTILINE)
_BLANKS = re.compile(r"[ \t\r\n]*")

# No object of Kubernetes comes near either.
_MAX_DEPTH = 100
_MAX_VALUES = 1_000_000
_NO_FILE = ' in "<unicode string>",'
"""Where the parser says something is; whoever gave us the text knows from which file."""
_TOO_DEEP = f"nested more than {_MAX_DEPTH} levels deep"
# What two readers of a number still agree on.
_INTEGERS = range(-(2**63), 2**64)


class YamlError(ValueError):
    """The text is no YAML, or says something that JSON cannot; the message tells where."""


def parse_documents(text: str) -> Iterator[Any]:
    """Read a stream of documents one by one; a document without content is None. Raises YamlError.

    Documents of JSON may follow each other without a line between them.
    """
    yield from _checked(_documents(text))


def parse_foreign(text: str, most_values: int) -> list[Any]:
    """Read the documents of a text of YAML that others may have written to do harm.

    Refuses references, by which a small text becomes a huge value, and too many values. Raises YamlError.
    """
    _check_events(text, most_values, references=False)
    return list(_checked(yaml.load_all(text, Loader=_Loader)))


def _checked(documents: Iterator[Any]) -> Iterator[Any]:
    try:
        for document in documents:
            _check_size(document)
            yield document
    except RecursionError as error:
        raise YamlError(_TOO_DEEP) from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(" ".join(str(error).replace(_NO_FILE, " at").split())) from error


def _documents(text: str) -> Iterator[Any]:
    if not _JSON_START.search(text):
        yield from _yaml_documents(text, 0, len(text))
        return
    starts = [marker.span() for marker in _MARKER.finditer(text)]
    for (start, body), (end, _) in zip([(0, 0), *starts], [*starts, (len(text), 0)], strict=True):
        if texts := _json_texts(text[body:end]):
            yield from map(_json_value, texts)
        else:
            yield from _yaml_documents(text, start, end)


def _json_value(text: str) -> Any:
    strictjson.decode(text.encode())  # refuses what is not sound
    return json.loads(text, parse_float=_number)


def _number(text: str) -> int | float:
    """A number that may have a fraction. On its way to an API server one that has none is spelled like an integer."""
    number = float(text)
    whole = int(number)
    return whole if whole == number and whole in _INTEGERS else number


def _yaml_documents(text: str, start: int, end: int) -> Iterator[Any]:
    """The documents in a part of a text; what is wrong with one is told by its line in the whole."""
    _check_events(text[start:end], _MAX_VALUES)
    try:
        yield from yaml.load_all(text[start:end], Loader=_Loader)
    except yaml.MarkedYAMLError:
        if start == 0:
            raise
        list(yaml.load_all("\n" * text.count("\n", 0, start) + text[start:end], Loader=_Loader))
        raise


def _check_events(text: str, most_values: int, *, references: bool = True) -> None:
    """Refuse a text by its brackets, indents and references, before anything is made of it.

    What the library then does with it recurses in C, where a deep text ends the process, and has no limit of its own.
    """
    values, sizes = 0, dict[str, int]()
    begun: list[tuple[str | None, int]] = []
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, before = begun.pop()
                if anchor is not None:
                    sizes[anchor] = values - before
            elif isinstance(event, yaml.AliasEvent):
                if not references:
                    raise YamlError("it has aliases")
                if any(event.anchor == anchor for anchor, _ in begun):
                    raise YamlError(f"the reference *{event.anchor} is recursive")
                # A merge copies at once what it refers to: afterwards is too late to look.
                values += sizes.get(str(event.anchor), 1)
            elif isinstance(event, yaml.NodeEvent):
                if isinstance(event, yaml.CollectionStartEvent):
                    begun.append((event.anchor, values))
                values += 1
            if len(begun) > _MAX_DEPTH + 1:
                raise YamlError(_TOO_DEEP)
            if values > most_values:
                raise YamlError(f"more than {most_values} values")
    except yaml.YAMLError:
        # Whoever reads the text finds the same, behind the documents that are sound.
        return


def _json_texts(text: str) -> list[str]:
    """The documents in a text of JSON; none where it is something else."""
    texts = []
    position, decoder = _after_blanks(text, 0), json.JSONDecoder()
    if text[position : position + 1] not in ("{", "["):
        return []
    while position < len(text):
        try:
            _, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            return []
        texts.append(text[position:end])
        position = _after_blanks(text, end)
    return texts


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _check_size(document: Any) -> None:
    """Refuse what is too deep to work with, and what a few references blow up beyond all measure."""
    sizes: dict[int, int] = {}

    def size_of(value: Any, depth: int) -> int:
        if not isinstance(value, dict | list):
            return 1
        if depth > _MAX_DEPTH:
            raise YamlError(_TOO_DEEP)
        # A value that is referred to often is in many places, but is measured once.
        if id(value) not in sizes:
            inner = value.values() if isinstance(value, dict) else value
            sizes[id(value)] = 1 + sum(size_of(item, depth + 1) for item in inner)
        return sizes[id(value)]

    if size_of(document, 0) > _MAX_VALUES:
        raise YamlError(f"more than {_MAX_VALUES} values")


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
        if tag is None or tag.endswith((":null", ":str"))
    }
    bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012 - the same

    def construct_bool(self, node: yaml.ScalarNode) -> bool:
        value = self.bool_values.get(self.construct_scalar(node).lower())
        if value is None:
            raise _Unfit(problem="must be true or false", problem_mark=node.start_mark)
        return value

    def construct_int(self, node: yaml.ScalarNode) -> int | str:
        given: str = self.construct_scalar(node)
        text = given.replace("_", "")
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        number = int(text, 8 if octal else 0)
        if number in _INTEGERS:
            return number
        if digits.startswith(("0x", "0o", "0b")):
            # The same as for hashes with an exponent, see `construct_float`.
            return given
        raise _Unfit(problem="an integer must fit into 64 bits", problem_mark=node.start_mark)

    def construct_float(self, node: yaml.ScalarNode) -> int | float | str:
        text: str = self.construct_scalar(node)
        try:
            # What is too large for a number, such as the hash 1234e567, is text to Go, which writes it without quotes.
            return text if math.isinf(float(text)) else _number(text)
        except ValueError as error:
            raise _Unfit(problem=str(error), problem_mark=node.start_mark) from error

    def construct_list(self, node: yaml.SequenceNode) -> list[Any]:
        # All at once, so that a list inside itself is refused.
        return self.construct_sequence(node, deep=True)

    def construct_map(self, node: yaml.Node) -> dict[str, Any]:
        # A tag can say that anything is a map.
        if not isinstance(node, yaml.MappingNode):
            raise _Unfit(problem="must be a map", problem_mark=node.start_mark)
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


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:bool", _Loader.construct_bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_float)
# Where `<<` is no key, it is a text like any other.
_Loader.yaml_constructors["tag:yaml.org,2002:merge"] = _Loader.yaml_constructors["tag:yaml.org,2002:str"]
_Loader.add_constructor("tag:yaml.org,2002:seq", _Loader.construct_list)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_map)
