"""A report of a training pod: from the bytes that it sends to the fields that are applied. Pure.

Parity: as in the original, null is as good as absent, an unknown field is passed over, and times have whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.decoding import decode, encode
from ktrainer.api.resources import TRAINJOBS
from ktrainer.api.trainjobstatus import TrainerStatus
from ktrainer.kube import fields, strictjson
from ktrainer.kube.fields import Path
from ktrainer.kube.timestamp import format_time, parse_time
from ktrainer.statusserver.refusal import invalid

if TYPE_CHECKING:
    from datetime import datetime

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.kube.jsonvalue import JsonObject

MANAGER: Final = "trainer-status"
"""The field manager of what training pods report."""

_FIELD: Final = "trainerStatus"
_KNOWN: Final = frozenset(field.alias or name for name, field in TrainerStatus.model_fields.items())


@dataclass(frozen=True, slots=True)
class Target:
    """Whose progress it is: this very TrainJob, not a namesake."""

    key: ObjectKey
    uid: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a training pod says."""

    trainer_status: JsonObject
    """The value of the field, with nothing in it that the API does not know."""

    @property
    def reported_at(self) -> datetime:
        """When the training said so, by its own clock."""
        return parse_time(self.trainer_status["lastUpdatedTime"])

    def payload(self) -> JsonObject:
        """The report as it came, for the answer."""
        return {_FIELD: self.trainer_status}


def parse_report(body: bytes) -> Report | None:
    """Read a report; none where it is empty and there is nothing to do. Raises Refusal."""
    try:
        value = strictjson.decode(body)
    except strictjson.StrictJsonError as error:
        # The text of the error is ours; what it quotes of the body goes back to where it came from.
        raise invalid([fields.invalid(Path(), "", str(error))]) from None
    if not isinstance(value, dict):
        raise invalid([fields.invalid(Path(), "", "must be of type object")])
    status = value.get(_FIELD)
    if status is None:
        return None
    if not isinstance(status, dict):
        raise invalid([fields.invalid(Path(_FIELD), status, "must be of type object")])
    return Report(_trainer_status_of(status))


def build_apply(target: Target, resource_version: str, report: Report) -> JsonObject:
    """What to apply to the TrainJob's status, provided that it is still this version of this very object."""
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": TRAINJOBS.kind,
        "metadata": {
            "namespace": target.key.namespace,
            "name": target.key.name,
            "uid": target.uid,
            "resourceVersion": resource_version,
        },
        "status": report.payload(),
    }


def _trainer_status_of(value: JsonObject) -> JsonObject:
    known = {name: each for name, each in value.items() if name in _KNOWN and each is not None}
    if isinstance(metrics := known.get("metrics"), list):
        known["metrics"] = [_metric_of(each) for each in metrics]
    path = Path(_FIELD)
    if "lastUpdatedTime" not in known:
        raise invalid([fields.required(path.child("lastUpdatedTime"))])
    decoded = decode(TrainerStatus, known)
    if not isinstance(decoded, TrainerStatus):
        raise invalid(
            [fields.FieldError(each.kind, path.child(each.path.text), each.value, each.detail) for each in decoded]
        )
    at = parse_time(known["lastUpdatedTime"])
    return {**encode(decoded), "lastUpdatedTime": format_time(at)}


def _metric_of(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name in {"name", "value"} and each is not None}
