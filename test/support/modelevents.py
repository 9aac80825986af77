"""How the model API server spells what it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.kube.errors import error_of

if TYPE_CHECKING:
    from ktrainer.client.selectors import Selectors
    from ktrainer.kube.errors import ApiError

Json = dict[str, Any]

_METADATA_KIND = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


@dataclass(frozen=True)
class Change:
    """What happened to one object at one revision."""

    revision: int
    old: Json | None
    new: Json | None


def line_of(kind: str, obj: Json) -> bytes:
    return orjson.dumps({"type": kind, "object": obj})


def bookmark_line(kind: Json, revision: int, *, is_end: bool = False) -> bytes:
    metadata: Json = {"resourceVersion": str(revision), "creationTimestamp": None}
    if is_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line_of("BOOKMARK", {**kind, "metadata": metadata})


def status_of(code: int, reason: str, message: str = "", cause: str = "") -> Json:
    details = {"causes": [{"reason": cause}]} if cause else {}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or f"it is {reason}",
        "details": details,
    }


def api_error(
    code: int, reason: str, message: str = "", *, cause: str = "", retry_after: float | None = None
) -> ApiError:
    """The error that a client makes of such an answer."""
    return error_of(code, orjson.dumps(status_of(code, reason, message, cause=cause)), retry_after=retry_after)


def change_line(change: Change, namespace: str, selectors: Selectors, *, metadata_only: bool) -> bytes | None:
    """The event of a change for a watch of this scope, if it is any of its business."""
    had, has = (is_selected(obj, namespace, selectors) for obj in (change.old, change.new))
    if has and change.new is not None:
        return line_of("MODIFIED" if had else "ADDED", shown(change.new, metadata_only=metadata_only))
    if had and change.old is not None:
        metadata = {**change.old["metadata"], "resourceVersion": str(change.revision)}
        return line_of("DELETED", shown({**change.old, "metadata": metadata}, metadata_only=metadata_only))
    return None


def is_selected(obj: Json | None, namespace: str, selectors: Selectors) -> bool:
    """Whether an object is there and in scope; of label selectors only `key=value` and `key` are understood."""
    if obj is None or (namespace and obj["metadata"]["namespace"] != namespace):
        return False
    labels = obj["metadata"].get("labels", {})
    wanted = [term.partition("=") for term in selectors.labels.split(",") if term]
    return all(labels.get(key) == value if equals else key in labels for key, equals, value in wanted)


def shown(obj: Json, *, metadata_only: bool) -> Json:
    return {**_METADATA_KIND, "metadata": obj["metadata"]} if metadata_only else obj


def without_kind(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
