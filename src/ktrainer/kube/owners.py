"""Who owns an object: reading and building owner references.

Kinds are matched by group and name; the version in a reference is whatever its writer spoke.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.kube.meta import ObjectMeta, OwnerReference

if TYPE_CHECKING:
    from ktrainer.kube.identity import GroupKind, GroupVersionKind


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The reference to the object's controller; an API server admits at most one."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def is_controlled_by(meta: ObjectMeta, uid: str) -> bool:
    """Whether the object's controller is the very object with this uid, not a namesake."""
    controller = controller_of(meta)
    return controller is not None and controller.uid == uid


def owners_of(meta: ObjectMeta, kind: GroupKind, *, only_controller: bool = False) -> tuple[OwnerReference, ...]:
    """The references to owners of a kind, in any version."""
    return tuple(
        owner
        for owner in meta.owner_references
        if owner.gvk.group_kind == kind and (owner.controller or not only_controller)
    )


def build_controller_reference(gvk: GroupVersionKind, meta: ObjectMeta) -> OwnerReference:
    """The reference by which a child names its controller, whose deletion then waits for the child.

    Raises ValueError for an owner without a uid: the garbage collector would delete its children at once.
    """
    if not meta.uid:
        raise ValueError(f"{gvk.kind} {meta.key} has no uid, so it cannot own anything yet")
    return OwnerReference(
        api_version=gvk.api_version,
        kind=gvk.kind,
        name=meta.name,
        uid=meta.uid,
        controller=True,
        block_owner_deletion=True,
    )
