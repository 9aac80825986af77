"""What a manager leaves on the server for its TrainJobs, in a form in which two managers can be compared.

Uids, times and versions, which differ from run to run, are dropped; of generated keys the form is kept.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.runtime.snapshot import KEY, parse_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Api, Object

FIELD_MANAGER = "trainer"
"""By what name both managers write."""

_COLLECTIONS = {
    "jobset": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "configmap": "/api/v1/namespaces/{}/configmaps",
    "secret": "/api/v1/namespaces/{}/secrets",
    "coscheduling": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups",
    "volcano": "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    "hpa": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
}
"""All that a TrainJob may control, by a short name for the kind."""

Children = dict[str, "Object"]
"""The objects of one TrainJob, by kind and what their names have beyond the TrainJob's."""

_ABSENT = "absent"
_CONTENT = frozenset({"spec", "data", "type", "immutable"})
_PASSING = frozenset({"uid", "resourceVersion", "creationTimestamp", "namespace", "managedFields"})


def children_in(api: Api, namespace: str) -> dict[str, Children]:
    """The objects that TrainJobs of a namespace control, by TrainJob."""
    found: dict[str, Children] = {}
    for kind, path in _COLLECTIONS.items():
        for item in api.get(path.format(namespace))["items"]:
            for owner in item["metadata"].get("ownerReferences", ()):
                if owner["kind"] == "TrainJob" and owner.get("controller"):
                    name = item["metadata"]["name"].removeprefix(owner["name"])
                    found.setdefault(owner["name"], {})[kind + name] = item
    return found


def differences(theirs: Children, ours: Children) -> dict[str, tuple[Any, Any]]:
    """All fields in which two sets of objects differ: the object and the path of the field, to both values."""
    one, other = _fields_of(theirs), _fields_of(ours)
    pairs = {path: (one.get(path, _ABSENT), other.get(path, _ABSENT)) for path in sorted({*one, *other})}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def identity_of(child: Object) -> Object:
    """What must stay as it is where a TrainJob goes on untouched: which object it is, and all that it asks for."""
    kept = {key: _without_empty(value) for key, value in child.items() if key in _CONTENT}
    metadata = child["metadata"]
    # Where no pods are, empty maps may go, and are counted as a change.
    generation = None if child.get("spec", {}).get("suspend") else metadata.get("generation")
    return {**kept, "uid": metadata["uid"], "owners": metadata["ownerReferences"], "generation": generation}


def _fields_of(children: Children) -> dict[str, Any]:
    return {f"{name} {path}": value for name, child in children.items() for path, value in _flat(_shown(child))}


def _shown(child: Object) -> Object:
    """The object without what passes, and without its status, which differs from moment to moment."""
    metadata = {key: value for key, value in child["metadata"].items() if key not in _PASSING}
    owners = metadata.get("ownerReferences", ())
    metadata["ownerReferences"] = [{key: owner[key] for key in owner if key != "uid"} for owner in owners]
    writes = [
        each
        for each in child["metadata"]["managedFields"]
        if each["manager"] == FIELD_MANAGER and "subresource" not in each
    ]
    return {
        **{key: value for key, value in child.items() if key != "status"},
        "metadata": metadata,
        "data": _shown_data(child),
        "written": bool(writes),
        "applied": _without_uid([each["fieldsV1"] for each in writes if each["operation"] == "Apply"]),
    }


def _shown_data(child: Object) -> Object:
    data: Object = child.get("data", {})
    if "type" in child:
        return {key: _form_of(base64.b64decode(value).decode()) for key, value in data.items()}
    if KEY in data:
        return {**data, KEY: _read(data[KEY])}
    return data


def _read(snapshot: str) -> Object:
    """The runtime that is read from a snapshot, whatever else the text holds and in what form."""
    blueprint = parse_snapshot(snapshot)
    policies = {field: str(getattr(blueprint, field)) for field in ("ml_policy", "pod_group_policy", "run_policy")}
    return {
        **policies,
        "name": f"{blueprint.kind} {blueprint.name}",
        "labels": dict(blueprint.labels),
        "annotations": dict(blueprint.annotations),
        "template": _without_empty(orjson.loads(blueprint.template)),
    }


def _form_of(secret: str) -> str:
    """The secret without remarks, and with X for all that is random: lines of base64, and keys in quotes."""
    lines = [line for line in secret.splitlines() if line.strip() and not line.startswith("#")]
    return re.sub(r'(?<=")[^"]{40}(?=")|[A-Za-z0-9+/=\n]{64,}', "X", "\n".join(lines))


def _without_uid(value: Any) -> Any:
    """Owned fields with owners that are told by their uid made equal."""
    if isinstance(value, dict):
        return {re.sub(r'"uid":"[^"]*"', "uid", key): _without_uid(item) for key, item in value.items()}
    return [_without_uid(item) for item in value] if isinstance(value, list) else value


def _without_empty(value: Any) -> Any:
    """The value without empty maps, which say nothing: only the original writes them."""
    if isinstance(value, dict):
        items = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item != {} or key == "emptyDir"}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if value and isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif value and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, value
