"""Writes src/ktrainer/kube/facts.json from the OpenAPI definitions that the package kubernetes-validate ships.

    python hack/gen_facts.py            write the file
    python hack/gen_facts.py --check    fail if the file is not what would be written

Descriptions are dropped, names shortened, and only the types that the roots below lead to are kept. The module
`ktrainer.kube.facts` tells what is in the file.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from generated import write_or_check

VERSION = "1.36.0"
FILE = Path(__file__).parent.parent / "src/ktrainer/kube/facts.json"

ROOTS = (
    "io.k8s.api.autoscaling.v2.MetricSpec",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.batch.v1.JobTemplateSpec",
    "io.k8s.api.coordination.v1.Lease",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.core.v1.Pod",
    "io.k8s.api.core.v1.PodTemplateSpec",
    "io.k8s.api.core.v1.Secret",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.events.v1.Event",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
)

PREFIXES = ("io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s.api.")

# The definitions say only that these are of one type or another.
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "quantity"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "int-or-string"},
}

JsonObject = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Write or check the file; the exit code is 1 when the check fails."""
    return write_or_check(FILE, render(build_facts(load_definitions(), ROOTS)), FILE.name, arguments)


def load_definitions() -> JsonObject:
    """Read the definitions out of the installed package, without importing it."""
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("the package kubernetes-validate is not installed")
    folder = Path(spec.origin).parent / "kubernetes-json-schema" / f"v{VERSION}-local"
    definitions: JsonObject = json.loads((folder / "_definitions.json").read_text())["$defs"]
    return definitions


def build_facts(definitions: JsonObject, roots: tuple[str, ...]) -> JsonObject:
    """Collect the types that the roots lead to, in the order of their short names."""
    facts: JsonObject = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if short(name) not in facts:
            facts[short(name)] = build_type(definitions, definitions[name], waiting)
    return dict(sorted(facts.items()))


def build_type(definitions: JsonObject, definition: JsonObject, waiting: list[str]) -> JsonObject:
    """The facts of an object type; the names of types that its fields refer to are added to `waiting`."""
    fields = definition["properties"].items()
    return without_empty(
        {
            "fields": {field: build_shape(definitions, schema, waiting) for field, schema in fields},
            "required": definition.get("required"),
            "mapType": definition.get("x-kubernetes-map-type"),
        }
    )


def build_shape(definitions: JsonObject, schema: JsonObject, waiting: list[str]) -> JsonObject:
    """The facts of a value. References to what has no fields of its own are resolved at once."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name in SCALARS:
        return SCALARS[name]
    if name and "properties" not in definitions[name]:
        return build_shape(definitions, definitions[name], waiting)
    if name:
        waiting.append(name)
    inner = {
        key: build_shape(definitions, schema[key], waiting)
        for key in ("items", "additionalProperties")
        if key in schema
    }
    return without_empty(
        {
            "type": "map" if "additionalProperties" in inner else json_type(schema),
            "ref": short(name),
            "format": schema.get("format"),
            "enum": schema.get("enum"),
            "items": inner.get("items"),
            "values": inner.get("additionalProperties"),
            "strategies": schema.get("x-kubernetes-patch-strategy", "").split(","),
            "mergeKey": schema.get("x-kubernetes-patch-merge-key"),
            "listType": schema.get("x-kubernetes-list-type"),
            "mapKeys": schema.get("x-kubernetes-list-map-keys"),
            "mapType": schema.get("x-kubernetes-map-type"),
        }
    )


def json_type(schema: JsonObject) -> str:
    """The one JSON type of a value; that it may also be null goes without saying."""
    types = schema.get("type", "")
    return types if isinstance(types, str) else next(type_ for type_ in types if type_ != "null")


def short(name: str) -> str:
    """The name of a type without the prefix that tells nothing."""
    prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")
    return name.removeprefix(prefix)


def without_empty(facts: JsonObject) -> JsonObject:
    """Leave out what the reader assumes anyway."""
    return {key: value for key, value in facts.items() if value not in (None, "", [], [""])}


def render(facts: JsonObject) -> str:
    """One type a line: compact, and still readable in a diff."""
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(type_, separators=(',', ':'))}" for name, type_ in facts.items()
    )
    return f"{{\n{lines}\n}}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
