"""Why no objects can be built for a TrainJob.

PlanError
├── UnsupportedRuntime   nobody knows the kind that it refers to; will not heal
├── RuntimeNotFound      what it refers to does not exist (yet)
├── SnapshotInvalid      its snapshot cannot be trusted
└── Rejected             it does not fit its runtime
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.labels import GROUP
from ktrainer.framework.findings import Findings
from ktrainer.kube import fields
from ktrainer.kube.fields import Path, message_of

if TYPE_CHECKING:
    from ktrainer.kube.identity import GroupKind


class PlanError(Exception):
    """The base of all errors of this package."""


class UnsupportedRuntime(PlanError):
    """The TrainJob refers to a kind of runtime that does not exist."""

    def __init__(self, kind: GroupKind) -> None:
        super().__init__(f"unsupported runtime: {kind}")


class RuntimeNotFound(PlanError):
    """The TrainJob refers to a runtime that is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"the {kind} {name} does not exist")
        reference = {"apiGroup": GROUP, "kind": kind, "name": name}
        detail = f"the {kind} must exist before the TrainJob"
        self.findings = Findings([fields.invalid(Path("spec.runtimeRef"), reference, detail)])
        """The same to somebody who is about to create the TrainJob."""


class SnapshotInvalid(PlanError):
    """The snapshot of the runtime is not the TrainJob's, or not what was written."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid runtime snapshot: {reason}")
        self.reason = reason


class Rejected(PlanError):
    """Validation has found errors, which admission did not see or was not asked about."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(message_of(findings.errors))
        self.findings = findings
