"""Variables that a plugin sets itself, and that a TrainJob may therefore not set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.trainjob import trainer_of
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.fields import ErrorList


def refuse_reserved(trainjob: TrainJob, names: AbstractSet[str]) -> ErrorList:
    """Refuse a TrainJob whose trainer sets variables of these names."""
    taken = sorted({entry["name"] for entry in trainer_of(trainjob).env} & names)
    return [fields.invalid(Path("spec.trainer.env"), taken, "these variables are set by the runtime")] if taken else []
