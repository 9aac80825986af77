"""The events of the TrainJob controller: what people read in `kubectl describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import TRAINJOBS
from ktrainer.client.events.body import ObjectReference

if TYPE_CHECKING:
    from ktrainer.client.events.recorder import EventRecorder
    from ktrainer.kube.meta import ObjectMeta

CONTROLLER: Final = "trainer-trainjob-controller"
"""Who says so."""
ACTION: Final = "Reconciling"
CREATION_FAILED: Final = "TrainJobResourcesCreationFailed"
SNAPSHOT_LOST: Final = "RuntimeSnapshotLost"
NOTE_CHARACTERS: Final = 1023
"""As the original cuts them; the status has the whole."""

_CUT: Final = "..."


class Events:
    """Records events about TrainJobs."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def creation_failed(self, meta: ObjectMeta, message: str) -> None:
        """Something that the TrainJob needs could not be made."""
        self._warn(meta, CREATION_FAILED, message)

    def snapshot_lost(self, meta: ObjectMeta) -> None:
        """The job goes on with another runtime than it was made from."""
        self._warn(meta, SNAPSHOT_LOST, "the snapshot of the runtime was lost, and the runtime has changed since")

    def _warn(self, meta: ObjectMeta, reason: str, note: str) -> None:
        regarding = ObjectReference(TRAINJOBS.api_version, TRAINJOBS.kind, meta.namespace, meta.name, meta.uid)
        if len(note) > NOTE_CHARACTERS:
            note = note[: NOTE_CHARACTERS - len(_CUT)] + _CUT
        self._recorder.record(regarding, "Warning", reason, ACTION, note)
