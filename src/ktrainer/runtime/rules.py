"""What the CRDs say of objects beyond which fields they have and of which types: for those that met no API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.kube import fields
from ktrainer.kube.facts import ANYTHING, Shape
from ktrainer.kube.fields import Path
from ktrainer.runtime.blueprint import TEMPLATE
from ktrainer.runtime.jobsetfacts import JOBSET_SPEC, jobset_facts
from ktrainer.runtime.pruning import fields_of, shape_of

if TYPE_CHECKING:
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject

_KEYS: Final = {"protocol": "TCP"}
"""What the keys of lists are where they are absent; others are empty."""


def validate_rules(value: JsonObject) -> ErrorList:
    """Check a runtime whose structure is sound."""
    spec = value.get("spec") or {}
    template = spec.get("template") or {}
    jobset = template.get("spec") or {}
    errors: ErrorList = []
    for path, owner, key in ((Path("spec"), value, "spec"), (Path("spec.template"), spec, "template")):
        if owner.get(key) == {}:
            errors.append(fields.invalid(path, 0, "must have at least 1 field"))
    _walk(jobset, Shape(ref=JOBSET_SPEC), TEMPLATE, errors)
    waits = any(job.get("dependsOn") is not None for job in jobset.get("replicatedJobs") or ())
    if waits and (jobset.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
        errors.append(
            fields.invalid(TEMPLATE, "object", "dependsOn cannot be combined with a startupPolicy of InOrder")
        )
    return errors


def validate_quantities(value: JsonObject, kind: str) -> ErrorList:
    """Find quantities such as 0.5 that are numbers in an object of one of our kinds.

    Those of whole numbers are taken everywhere, but of fractions only text, unlike in a pod.
    """
    errors: ErrorList = []
    _find_fractions(value, shape_of(kind), Path(), errors)
    return errors


def _find_fractions(value: Any, shape: Shape, path: Path, errors: ErrorList) -> None:
    if isinstance(value, dict):
        known = fields_of(shape.ref) if shape.ref else {}
        for key, item in value.items():
            _find_fractions(item, known.get(key) or shape.values or ANYTHING, path.child(key), errors)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _find_fractions(item, shape.items or ANYTHING, path.index(position), errors)
    elif shape.type == "quantity" and isinstance(value, float) and not value.is_integer():
        errors.append(fields.invalid(path, value, f'must be an integer or a string, such as "{value}"'))


def _walk(value: Any, shape: Shape, path: Path, errors: ErrorList) -> None:
    """Find words that nobody knows, and keys of lists that come twice."""
    if isinstance(value, dict):
        facts = jobset_facts()
        for key, item in value.items():
            _walk(item, facts.child_of(shape, key), path.child(key), errors)
    elif isinstance(value, list):
        if shape.list_type == "map":
            _check_keys(value, shape.map_keys, path, errors)
        for position, item in enumerate(value):
            _walk(item, shape.items or ANYTHING, path.index(position), errors)
    elif shape.enum and value is not None and value not in shape.enum:
        errors.append(fields.not_supported(path, value, shape.enum))


def _check_keys(items: list[JsonObject], keys: tuple[str, ...], path: Path, errors: ErrorList) -> None:
    seen = set()
    for position, item in enumerate(items):
        found = tuple(item.get(key) or _KEYS.get(key, "") for key in keys)
        if found in seen:
            place = path.index(position)
            if len(keys) == 1:
                errors.append(fields.duplicate(place.child(keys[0]), found[0]))
            else:
                errors.append(fields.duplicate(place, dict(zip(keys, found, strict=True))))
        seen.add(found)
