"""The words of admission: what an API server asks, and what a hook answers, as data.

A handler takes an `AdmissionRequest` and returns what one of `allowed`, `denied` and `patched` builds. How requests and
answers look on the wire is the business of `review`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import orjson

from ktrainer.kube.identity import GroupVersionKind, ObjectKey
from ktrainer.kube.patches import diff

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

_NULL = msgspec.Raw(b"null")


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class KindReference(msgspec.Struct, frozen=True):
    """A kind, spelt as reviews spell it."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind in the kit's own terms."""
        return GroupVersionKind(self.group, self.version, self.kind)


class ResourceReference(msgspec.Struct, frozen=True):
    """A resource, spelt as reviews spell it."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks, as the API server says; only as true as the caller's claim to be the API server."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class AdmissionRequest(msgspec.Struct, rename="camel", frozen=True):
    """One question of an API server. It may be asked more than once, and need not be about something that happens."""

    uid: str
    """Identifies the question, not the object."""
    kind: KindReference
    resource: ResourceReference
    operation: Operation
    sub_resource: str = ""
    request_kind: KindReference | None = None
    """What the user asked for, where the API server converted it to `kind` to suit the hook's rules."""
    request_resource: ResourceReference | None = None
    request_sub_resource: str = ""
    name: str = ""
    """Empty where the server is yet to generate it."""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    dry_run: bool = False
    """Nothing will be stored: the handler must not have side effects."""
    raw_object: msgspec.Raw = msgspec.field(default=_NULL, name="object")
    raw_old_object: msgspec.Raw = msgspec.field(default=_NULL, name="oldObject")
    options: msgspec.Raw = _NULL
    """The CreateOptions, UpdateOptions or DeleteOptions, undecoded."""

    @property
    def object(self) -> bytes | None:
        """The object as it is to be stored, undecoded; None when it is deleted."""
        return _bytes_of(self.raw_object)

    @property
    def old_object(self) -> bytes | None:
        """The object as it is stored, undecoded; None when it is created."""
        return _bytes_of(self.raw_old_object)

    @property
    def key(self) -> ObjectKey:
        """The object's key within its resource."""
        return ObjectKey(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """One answer."""

    is_allowed: bool
    code: int = 200
    """What the user gets to see as HTTP status where the answer is no; brought into 400 to 599 then."""
    reason: str = ""
    """The reason of the Status that the user gets to see, in the API server's own vocabulary."""
    message: str = ""
    patch: tuple[JsonObject, ...] = ()
    """The JSON patch that makes the object what it shall be; only mutating hooks may have one."""
    warnings: tuple[str, ...] = ()
    """Lines for the user's terminal; they are tidied up on the way out."""


Handler: TypeAlias = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]
"""Answers a question. It is cancelled at its deadline, and when the API server no longer waits for it."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One handler and where it is served."""

    path: str
    handle: Handler
    is_mutating: bool


def allowed(*, warnings: tuple[str, ...] = ()) -> AdmissionResponse:
    """Let the request pass as it is."""
    return AdmissionResponse(is_allowed=True, warnings=warnings)


def denied(
    message: str, *, code: int = 403, reason: str = "Forbidden", warnings: tuple[str, ...] = ()
) -> AdmissionResponse:
    """Refuse the request, and tell the user why."""
    return AdmissionResponse(is_allowed=False, code=code, reason=reason, message=message, warnings=warnings)


def errored(code: int, reason: str, message: str) -> AdmissionResponse:
    """Refuse the request because we could not judge it: whatever a failure does, it does not let objects slip in."""
    return denied(message, code=code, reason=reason)


def patched(request: AdmissionRequest, new: JsonObject, *, warnings: tuple[str, ...] = ()) -> AdmissionResponse:
    """Let the request pass with its object changed to `new`; raises ValueError where there is no object."""
    if request.object is None:
        raise ValueError(f"{request.operation} has no object to change")
    operations = diff(orjson.loads(request.object), new)
    return AdmissionResponse(is_allowed=True, patch=tuple(operations), warnings=warnings)


def path_of(gvk: GroupVersionKind, *, is_mutating: bool) -> str:
    """Where the hook of a kind is served by convention, such as /validate-batch-v1-job."""
    verb = "mutate" if is_mutating else "validate"
    return f"/{verb}-{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"


def _bytes_of(raw: msgspec.Raw) -> bytes | None:
    content = bytes(raw)
    return None if content == b"null" else content
