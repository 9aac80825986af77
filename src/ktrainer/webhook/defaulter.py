"""When each runtime patch of a TrainJob was made or last altered: the webhook dates them, so that others can tell.

It is asked before anybody has held the TrainJob against its schema. What does not fit in there is passed on as it came,
for the API server to refuse it with the path of the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ktrainer.kube.jsonvalue import JsonObject, are_same
from ktrainer.kube.timestamp import format_time
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, allowed

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock


class _Spec(msgspec.Struct, rename="camel"):
    runtime_patches: list[dict[str, Any]] | None = None


class _Sketch(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_SKETCHES: Final = msgspec.json.Decoder(_Sketch)


class TrainJobDefaulter:
    """Dates runtime patches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def handle(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer a request about a TrainJob."""
        try:
            new, old = _patches_of(request.object), _patches_of(request.old_object)
            operations = decide_times(old, new, format_time(self._clock.now()))
        except (msgspec.MsgspecError, RecursionError):
            return allowed()
        return AdmissionResponse(is_allowed=True, patch=tuple(operations))


def decide_times(old: list[JsonObject], new: list[JsonObject], now: str) -> list[JsonObject]:
    """The JSON patch that dates runtime patches: a new one unless it has a date, and one that has changed.

    One that has not changed gets its old date back, whatever it came with.
    """
    operations: list[JsonObject] = []
    before = {patch.get("manager"): patch for patch in old}
    for index, patch in enumerate(new):
        former, given = before.get(patch.get("manager")), patch.get("time")
        if former is None:
            wanted = given or now
        else:
            wanted = former.get("time") if are_same(_undated(former), _undated(patch)) else now
        path = f"/spec/runtimePatches/{index}/time"
        if wanted is None and "time" in patch:
            operations.append({"op": "remove", "path": path})
        elif wanted != given:
            operations.append({"op": "add", "path": path, "value": wanted})
    return operations


def _patches_of(trainjob: bytes | None) -> list[JsonObject]:
    """The runtime patches of a TrainJob; raises MsgspecError and RecursionError where they are none."""
    patches = [] if trainjob is None else _SKETCHES.decode(trainjob).spec.runtime_patches or []
    for patch in patches:
        msgspec.convert(patch.get("manager"), str | None)
    return patches


def _undated(patch: JsonObject) -> JsonObject:
    return {key: value for key, value in patch.items() if key != "time"}
