"""Whether a runtime has the finalizer that it should have, and the patch that mends it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ktrainer.api.labels import RUNTIME_IN_USE

if TYPE_CHECKING:
    from ktrainer.kube.meta import ObjectMeta


def is_protected(runtime: ObjectMeta) -> bool:
    """Whether a runtime has the finalizer."""
    return RUNTIME_IN_USE in runtime.finalizers


def is_wrong(runtime: ObjectMeta, *, in_use: bool) -> bool:
    """Whether the finalizer is missing or superfluous; no object that is being deleted can get one."""
    return is_protected(runtime) if not in_use else not (is_protected(runtime) or runtime.is_deleting)


def build_patch(runtime: ObjectMeta, *, in_use: bool) -> bytes:
    """The merge patch that adds or removes the finalizer, of this very version of the runtime.

    The server refuses it with a Conflict for any other version, so that no finalizer of others is lost.
    """
    others = [each for each in runtime.finalizers if each != RUNTIME_IN_USE]
    finalizers = [*others, RUNTIME_IN_USE] if in_use else others
    metadata = {"resourceVersion": runtime.resource_version, "finalizers": finalizers}
    return orjson.dumps({"metadata": metadata})
