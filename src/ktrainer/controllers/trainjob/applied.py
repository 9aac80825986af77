"""What was last applied for which TrainJob: an object that is as we want it is not applied again.

Whoever starts anew looks at the objects themselves. An object that somebody else changes back whenever we have written
it is written no more than once in a while. Plain functions, hence atomic.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from ktrainer.controllers.trainjob.drift import covers
from ktrainer.controllers.trainjob.verdict import LARGE_SECONDS
from ktrainer.machinery.control.reconcile import RetryableError

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.kube.errors import ApiError
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.kube.jsonvalue import JsonObject


MOMENT_SECONDS: Final = 0.001
"""What is not worth waiting for."""
PEACE_SECONDS: Final = 1.0
"""How long an object that was changed back is left alone."""
CONFLICT_SECONDS: Final = 5.0
"""How long a conflict may be due to a cache that is behind."""


class _Record(NamedTuple):
    digest: bytes
    """Of what we wanted."""
    generation: int
    """Of what the server made of it."""
    is_settled: bool
    """Whether the server's object had all that we wanted: some values it may spell in another way."""
    at: float
    """When it was written, in monotonic seconds."""


class _Refusal(NamedTuple):
    digest: bytes
    """Of what was too large."""
    error: ApiError
    at: float
    """When it was refused, in monotonic seconds."""


class _Conflict(NamedTuple):
    digest: bytes
    """Of what was sent, preconditions included."""
    since: float
    """When it was first refused, in monotonic seconds."""


class Applied:
    """The last applied objects by owner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[ObjectKey, dict[tuple[Resource, str], _Record]] = {}
        self._refusals: dict[ObjectKey, _Refusal] = {}
        """The last object of an owner that the server found too large."""
        self._conflicts: dict[ObjectKey, dict[tuple[Resource, str], _Conflict]] = {}
        """The last writes that met something else than they were for."""

    def is_same(self, owner: ObjectKey, resource: Resource, name: str, body: bytes) -> bool:
        """Whether this very body was applied last."""
        record = self._find(owner, resource, name)
        return record is not None and record.digest == _digest(body)

    def is_known(self, owner: ObjectKey, resource: Resource, name: str) -> bool:
        """Whether the object was applied at all."""
        return self._find(owner, resource, name) is not None

    def has_drifted(
        self, owner: ObjectKey, resource: Resource, name: str, wanted: JsonObject, present: JsonObject
    ) -> bool:
        """Whether an object lacks something that we want of it, or something that it had after it was applied."""
        if covers(present, wanted):
            return False
        record = self._find(owner, resource, name)
        if record is None or record.is_settled:
            return True
        return _generation(present) != record.generation

    def note(  # noqa: PLR0913 - whose object it is, and both sides of it
        self, owner: ObjectKey, resource: Resource, name: str, body: bytes, wanted: JsonObject, answer: JsonObject
    ) -> None:
        """Note that an object was applied, and what the server answered."""
        record = _Record(_digest(body), _generation(answer), covers(answer, wanted), self._clock.monotonic())
        self._records.setdefault(owner, {})[resource, name] = record
        self._conflicts.get(owner, {}).pop((resource, name), None)

    def check_peace(self, owner: ObjectKey, resource: Resource, name: str, body: bytes) -> None:
        """Raise RetryableError where this very body was written a moment ago, and somebody else has undone it."""
        record = self._find(owner, resource, name)
        if record is None or record.digest != _digest(body):
            return
        remaining = record.at + PEACE_SECONDS - self._clock.monotonic()
        if remaining > MOMENT_SECONDS:
            message = f"the {resource.kind} {name} was changed back right after we had written it"
            raise RetryableError(message, requeue_after=remaining)

    def note_too_large(self, owner: ObjectKey, body: bytes, error: ApiError) -> None:
        """Note that the server found an object too large."""
        self._refusals[owner] = _Refusal(_digest(body), error, self._clock.monotonic())

    def check_too_large(self, owner: ObjectKey, body: bytes) -> None:
        """Raise what the server said where it found this very body too large not long ago."""
        refusal = self._refusals.get(owner)
        if refusal is None or refusal.digest != _digest(body):
            return
        if refusal.at + LARGE_SECONDS - self._clock.monotonic() > MOMENT_SECONDS:
            raise refusal.error.with_traceback(None)

    def is_lasting_conflict(self, owner: ObjectKey, resource: Resource, name: str, sent: bytes) -> bool:
        """Note a conflict; return whether this very write has met it for longer than any cache is behind.

        As a rule a conflict means that an object has changed, which the cache will show; but admission may answer so,
        too.
        """
        now, conflicts = self._clock.monotonic(), self._conflicts.setdefault(owner, {})
        known = conflicts.get((resource, name))
        if known is None or known.digest != _digest(sent):
            conflicts[resource, name] = known = _Conflict(_digest(sent), now)
        return now - known.since > CONFLICT_SECONDS

    def forget(self, owner: ObjectKey) -> None:
        """Forget all objects of an owner."""
        self._records.pop(owner, None)
        self._refusals.pop(owner, None)
        self._conflicts.pop(owner, None)

    def _find(self, owner: ObjectKey, resource: Resource, name: str) -> _Record | None:
        return self._records.get(owner, {}).get((resource, name))


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def _generation(value: JsonObject) -> int:
    generation: int = value["metadata"].get("generation", 0)
    return generation
