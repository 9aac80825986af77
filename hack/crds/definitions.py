"""Structural schemas of types that are not ours: Kubernetes' from its OpenAPI definitions, JobSet's from jobset.yaml.

Descriptions are left out: they are not ours, and they are most of the bytes.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import yaml

VERSION: Final = "1.36.0"

Schema = dict[str, Any]

_FOLDER = Path(__file__).parent
_PREFIXES: Final = {"io.k8s.apimachinery.pkg.apis.meta.": "meta.", "io.k8s.api.": ""}

# What the definitions describe only in words.
_SCALARS: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": (
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
            r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        ),
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}
# A template holds the metadata that a user can give; the rest is the API server's to set.
_TEMPLATE_META: Final = {"labels", "annotations", "finalizers", "name", "namespace"}
_KEPT: Final = (
    "type",
    "format",
    "default",
    "enum",
    "minimum",
    "minLength",
    "maxLength",
    "maxItems",
    "pattern",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)


class Definitions:
    """Resolves the names of foreign types, such as core.v1.PodSpec, to schemas without references."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    @classmethod
    def load(cls) -> Definitions:
        """Read the definitions of Kubernetes out of the package kubernetes-validate, and our own beside this module."""
        spec = find_spec("kubernetes_validate")
        if spec is None or spec.origin is None:
            raise SystemExit("the package kubernetes-validate is not installed")
        path = Path(spec.origin).parent / "kubernetes-json-schema" / f"v{VERSION}-local" / "_definitions.json"
        definitions = {_short(name): schema for name, schema in json.loads(path.read_text())["$defs"].items()}
        definitions |= yaml.safe_load((_FOLDER / "jobset.yaml").read_text())
        for name, overlay in yaml.safe_load((_FOLDER / "overlay.yaml").read_text()).items():
            definitions[name] = _merged(definitions[name], overlay)
        meta = definitions["meta.v1.ObjectMeta"]["properties"]
        definitions["meta.v1.ObjectMeta"]["properties"] = {name: meta[name] for name in _TEMPLATE_META}
        return cls(definitions)

    def schema_of(self, name: str) -> Schema:
        """The schema of a type; raises KeyError where there is none."""
        return self._build({"$ref": name})

    def _build(self, schema: Schema) -> Schema:
        if "$ref" in schema:
            name = _short(schema["$ref"].removeprefix("#/$defs/"))
            if name in _SCALARS:
                return dict(_SCALARS[name])
            return {**self._build(self._definitions[name]), **_kept(schema)}
        if "properties" in schema:
            properties = {name: self._build(schema["properties"][name]) for name in sorted(schema["properties"])}
            return {"type": "object", **_kept(schema), "properties": properties}
        built = _kept(schema)
        for inner in ("items", "additionalProperties"):
            if inner in schema:
                built[inner] = self._build(schema[inner])
        return built


def _kept(schema: Schema) -> Schema:
    kept: Schema = {key: schema[key] for key in _KEPT if schema.get(key) is not None}
    if isinstance(kept.get("type"), list):
        # That a value may be null is no property of the type: an API server leaves out what is null.
        (kept["type"],) = (type_ for type_ in kept["type"] if type_ != "null")
    return kept


def _short(name: str) -> str:
    for prefix, replacement in _PREFIXES.items():
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name


def _merged(schema: Schema, overlay: Schema) -> Schema:
    merged = {
        key: _merged(schema[key], value) if isinstance(value, dict) and key in schema else value
        for key, value in overlay.items()
    }
    return {**schema, **merged}
