"""Feature gates: what can be switched on or off by name, in the configuration file and on the command line.

Parity: k8s.io/component-base/featuregate, with AllAlpha and AllBeta.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ktrainer.kube import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.kube.fields import ErrorList, Path


class Gate(StrEnum):
    """The features that have a gate."""

    TRAINJOB_STATUS = "TrainJobStatus"
    """Training pods report their progress to the manager."""
    RUNTIME_IN_USE_PROTECTION = "RuntimeInUseProtection"
    """A runtime that unfinished TrainJobs refer to waits for them before it is deleted."""
    CONDITIONS_WHILE_RUNNING = "ConditionsWhileRunning"
    """A TrainJob that runs keeps the conditions ResourcesReady and Running, by which kubeflow SDK 0.5 does not see that
    it runs."""


@dataclass(frozen=True, slots=True)
class Feature:
    """How a gate stands when nobody touches it, and which group switch moves it."""

    default: bool
    group: str = ""
    """Empty for a matter of choice: however mature it is, nobody gets it along with others."""


FEATURES: Final = {
    Gate.TRAINJOB_STATUS: Feature(default=False, group="AllAlpha"),
    Gate.RUNTIME_IN_USE_PROTECTION: Feature(default=True, group="AllBeta"),
    Gate.CONDITIONS_WHILE_RUNNING: Feature(default=False),
}
_NAMES: Final = (*FEATURES, "AllAlpha", "AllBeta")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def open_gates(*settings: Mapping[str, bool]) -> frozenset[Gate]:
    """The gates that are open: by the last setting that names them, else by the last that names their group."""
    merged: dict[str, bool] = {}
    for each in settings:
        merged.update(each)
    return frozenset(
        gate for gate, feature in FEATURES.items() if merged.get(gate, merged.get(feature.group, feature.default))
    )


def validate_gates(path: Path, settings: Mapping[str, bool]) -> ErrorList:
    """An error for each name that is no gate."""
    return [fields.not_supported(path, name, _NAMES) for name in settings if name not in _NAMES]


def parse_gates(path: Path, text: str) -> dict[str, bool] | ErrorList:
    """Read `A=true,B=false` as the command line has it; `path` is how errors call the place."""
    settings: dict[str, bool] = {}
    errors: ErrorList = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = map(str.strip, part.partition("="))
        if value not in _TRUE | _FALSE:
            errors.append(fields.invalid(path, part, "must have the form Name=true or Name=false"))
        settings[name] = value in _TRUE
    return errors or validate_gates(path, settings) or settings
