"""What the controller would do for the TrainJobs in documents, and what there is to say about the documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from ktrainer.api.decoding import decode
from ktrainer.api.labels import GROUP
from ktrainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from ktrainer.api.trainjob import TRAINJOB_CONTROLLER, TrainJob
from ktrainer.app.documents import Unreachable
from ktrainer.framework.errors import PluginError
from ktrainer.framework.findings import Findings
from ktrainer.kube import fields
from ktrainer.kube.fields import Kind, Path
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.blueprint import KINDS, read_blueprint
from ktrainer.runtime.errors import PlanError, Rejected
from ktrainer.runtime.validation import validate_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.app.documents import Document
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.runtime.registry import Runtimes

PLACEHOLDER_UID: Final = "00000000-0000-0000-0000-000000000000"

_TRAINJOB: Final = "TrainJob"


@dataclass(slots=True)
class Report:
    """What there is to say about one document."""

    document: Document
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, findings: Findings) -> None:
        """Take over findings."""
        self.errors += map(str, findings.errors)
        self.warnings += findings.warnings


@dataclass(slots=True)
class Rendering:
    """What came of all documents."""

    objects: list[JsonObject] = field(default_factory=list)
    """What would be written, in the order of the TrainJobs and for each in the order of writing."""
    reports: list[Report] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        """Whether there are errors in any document."""
        return any(report.errors for report in self.reports)


def is_trainjob(document: Document) -> bool:
    """Whether the document is a TrainJob."""
    return document.gvk.group == GROUP and document.gvk.kind == _TRAINJOB


def is_runtime(document: Document) -> bool:
    """Whether the document is a runtime."""
    return document.gvk.group == GROUP and document.gvk.kind in KINDS


async def render(documents: Iterable[Document], runtimes: Runtimes, namespace: str) -> Rendering:
    """Build what the TrainJobs need. Unknown fields are warned of: an API server drops them.

    Raises Unreachable where a reader that asks a cluster cannot.
    """
    rendering = Rendering()
    for document in documents:
        report = Report(document)
        rendering.reports.append(report)
        if is_runtime(document):
            _, _, unknown = _read_runtime(document)
            report.warnings += [f"{path}: unknown field" for path in unknown]
        if not is_trainjob(document):
            continue
        job, unknown = _read_trainjob(report, namespace)
        report.warnings += [f"{path}: unknown field" for path in unknown]
        if job is not None and job.spec.managed_by != TRAINJOB_CONTROLLER:
            report.warnings.append(f"nothing is built: the TrainJob is managed by {job.spec.managed_by}")
        elif job is not None:
            rendering.objects += await _plan(job, runtimes, report)
    return rendering


async def validate(documents: Iterable[Document], runtimes: Runtimes, namespace: str) -> Rendering:
    """Judge TrainJobs and runtimes as admission would. Unknown fields are errors, as they are to kubectl.

    Raises Unreachable where a reader that asks a cluster cannot.
    """
    rendering = Rendering()
    for document in documents:
        report = Report(document)
        rendering.reports.append(report)
        if is_trainjob(document):
            job, unknown = _read_trainjob(report, namespace)
            report.errors += [str(fields.forbidden(Path(path), "unknown field")) for path in unknown]
            if job is not None:
                await _validate(job, runtimes, report)
        elif is_runtime(document):
            errors, warnings, unknown = _read_runtime(document)
            errors += [fields.forbidden(Path(path), "unknown field") for path in unknown]
            report.add(Findings(errors, warnings))
        elif document.gvk.group == GROUP:
            report.errors.append(f"there is no kind {document.gvk.kind} in {GROUP}")
    return rendering


async def _plan(job: TrainJob, runtimes: Runtimes, report: Report) -> list[JsonObject]:
    try:
        plan = await runtimes.of(job.spec.runtime_ref).plan(job)
    except Rejected as rejected:
        report.add(rejected.findings)
    except (PlanError, PluginError) as error:
        _add_failure(error, report)
    else:
        report.warnings += plan.warnings
        return [component.body for component in plan.components]
    return []


async def _validate(job: TrainJob, runtimes: Runtimes, report: Report) -> None:
    try:
        report.add(await runtimes.of(job.spec.runtime_ref).validate(None, job))
    except (PlanError, PluginError) as error:
        _add_failure(error, report)


def _add_failure(error: PlanError | PluginError, report: Report) -> None:
    """Take a failure over into a report, unless it is none of the document's."""
    if isinstance(error.__cause__, Unreachable):
        raise error.__cause__
    report.errors.append(str(error))


def _read_trainjob(report: Report, namespace: str) -> tuple[TrainJob | None, list[str]]:
    """The TrainJob as if it had just been created, and the paths of fields that nobody knows."""
    value = copy_of(report.document.value)
    # What became of it elsewhere is of no interest here.
    value.pop("status", None)
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        metadata["namespace"] = metadata.get("namespace") or namespace
        metadata["uid"] = metadata.get("uid") or PLACEHOLDER_UID
    job = decode(TrainJob, value)
    if isinstance(job, list):
        report.add(Findings(job))
        return None, []
    return job, _unknown(decode(TrainJob, value, strict=True))


def _read_runtime(document: Document) -> tuple[ErrorList, list[str], list[str]]:
    """Errors and warnings of a runtime, and the paths of fields that nobody knows."""
    unknown: list[str] = []
    kind = document.gvk.kind
    blueprint = read_blueprint(kind, document.value, unknown)
    model = TrainingRuntime if kind == "TrainingRuntime" else ClusterTrainingRuntime
    unknown += _unknown(decode(model, document.value, strict=True))
    if isinstance(blueprint, list):
        return blueprint, [], unknown
    warnings = [f"the {kind} is deprecated, and will be removed"] if blueprint.is_deprecated else []
    return validate_jobs(orjson.loads(blueprint.template)), warnings, unknown


def _unknown(decoded: Any) -> list[str]:
    errors = decoded if isinstance(decoded, list) else []
    return [str(error.path) for error in errors if error.kind is Kind.FORBIDDEN]
