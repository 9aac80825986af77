"""What an error on the way from a TrainJob to its objects means: for the status, and for the next try. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.client.errors import TransportError
from ktrainer.controllers.trainjob.reading import Malformed
from ktrainer.framework.errors import EnvConflict, PluginError
from ktrainer.kube.conditions import TRUE, find
from ktrainer.kube.errors import ApiError, RequestTooLarge
from ktrainer.runtime.errors import Rejected, RuntimeNotFound, SnapshotInvalid

if TYPE_CHECKING:
    from ktrainer.api.trainjobstatus import TrainJobStatus
    from ktrainer.kube.identity import Resource
    from ktrainer.runtime.plan import Plan

SLOW_SECONDS: Final = 60.0
"""When something is tried again that will not heal by itself: whoever mends it need not tell us."""
LARGE_SECONDS: Final = 1800.0
"""When something too large or malformed is: each try costs a lot, and what mends it is a change that we are told of, as
a rule."""

_TOO_LARGE: Final = ("request is too large", "larger than max")
"""What etcd and its client say of an object beyond their limits; API servers pass it on as an internal error."""


class WriteRefused(Exception):
    """An object that must not, or cannot, be written as things are."""


class ForeignObject(WriteRefused):
    """Somebody else has an object of the name that we need."""

    def __init__(self, resource: Resource, name: str) -> None:
        super().__init__(
            f"the {resource.kind} {name} exists already, and this TrainJob does not control it; "
            "another one is made once it is gone"
        )


class ObjectTooLarge(WriteRefused):
    """An object that no API server would store."""

    def __init__(self, resource: Resource, name: str, size: int, limit: int, what: str = "") -> None:
        bytes_of = f"bytes {what}".strip()
        super().__init__(f"the {resource.kind} {name} would have {size} {bytes_of}, and {limit} are the limit")


class ResizeRefused(WriteRefused):
    """A JobSet that does not change its number of nodes while it runs."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(
            f"the JobSet refuses another number of nodes, which it takes only where JobSet's feature gate "
            f"ElasticJobSet is on: {error}"
        )


class ChangeRefused(WriteRefused):
    """An object that has not taken all that it should; the rest of it is written."""

    def __init__(self, lack: str, error: ApiError) -> None:
        super().__init__(f"{lack}: {error}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a TrainJob's resources are."""

    reason: Reason
    message: str
    is_lasting: bool = False
    """Whether trying again soon is pointless: something has to change first."""
    retry_seconds: float = SLOW_SECONDS
    """When something that lasts is tried again."""

    @property
    def is_ready(self) -> bool:
        """Whether everything is applied."""
        return self.reason is Reason.APPLIED


READY: Final = Verdict(Reason.APPLIED, "all that the TrainJob needs is applied")


def is_settled(status: TrainJobStatus, generation: int) -> bool:
    """Whether a status tells of everything being applied for this generation of the spec."""
    condition = find(status.conditions, ConditionType.RESOURCES_READY)
    return condition is not None and condition.status == TRUE and condition.observed_generation == generation


UNFINISHED: Final = Verdict(Reason.APPLY_FAILED, "the TrainJob ended before everything was applied")


def previous_verdict(status: TrainJobStatus, otherwise: Verdict = UNFINISHED) -> Verdict:
    """What a status says about the resources; where it says nothing, as a rule that they have not come to be."""
    condition = find(status.conditions, ConditionType.RESOURCES_READY)
    if condition is None or condition.reason not in list(Reason):
        return otherwise
    return Verdict(Reason(condition.reason), condition.message)


def verdict_on(plan: Plan) -> Verdict:
    """What to say where everything that was planned is written: that may not be all that is wanted."""
    if plan.refused:
        return Verdict(Reason.APPLY_REFUSED, plan.refused, is_lasting=True)
    return Verdict(Reason.APPLY_FAILED, plan.waits_for) if plan.waits_for else READY


def verdict_of(error: BaseException) -> Verdict:
    """What to say of an error, and whether it lasts."""
    cause = error.__cause__ if isinstance(error, PluginError) else None
    if isinstance(cause, ApiError | TransportError):
        return verdict_of(cause)
    if isinstance(error, RuntimeNotFound):
        return Verdict(Reason.RUNTIME_NOT_FOUND, str(error), is_lasting=True)
    if isinstance(error, SnapshotInvalid):
        return Verdict(Reason.RUNTIME_SNAPSHOT_INVALID, str(error), is_lasting=True)
    if isinstance(error, Rejected) or isinstance(cause, EnvConflict):
        return Verdict(Reason.VALIDATION_REJECTED, str(error), is_lasting=True)
    if isinstance(error, Malformed):
        return Verdict(Reason.VALIDATION_REJECTED, str(error), is_lasting=True, retry_seconds=LARGE_SECONDS)
    if is_too_large(error):
        return Verdict(Reason.APPLY_REFUSED, str(error), is_lasting=True, retry_seconds=LARGE_SECONDS)
    if isinstance(error, WriteRefused) or (isinstance(error, ApiError) and error.is_permanent):
        return Verdict(Reason.APPLY_REFUSED, str(error), is_lasting=True)
    if isinstance(error, ApiError | TransportError | PluginError):
        return Verdict(Reason.APPLY_FAILED, str(error))
    return Verdict(Reason.APPLY_FAILED, f"{type(error).__name__}: {error}")


def is_too_large(error: BaseException) -> bool:
    """Whether an error says that something is too large to be stored."""
    if isinstance(error, ApiError):
        return isinstance(error, RequestTooLarge) or any(words in error.message for words in _TOO_LARGE)
    return isinstance(error, ObjectTooLarge)
