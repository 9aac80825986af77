"""What the controller would do for the TrainJobs in documents, and what there is to say about the documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ktrainer.api.decoding import decode
from ktrainer.api.labels import GROUP
from ktrainer.api.resources import API_VERSION
from ktrainer.api.trainjob import TRAINJOB_CONTROLLER, TrainJob
from ktrainer.app.documents import Unreachable
from ktrainer.framework.errors import PluginError
from ktrainer.framework.findings import Findings
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.runtime.blueprint import KINDS
from ktrainer.runtime.errors import PlanError, Rejected, RuntimeNotFound
from ktrainer.runtime.rules import validate_quantities
from ktrainer.runtime.validation import validate_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.app.documents import Document
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.runtime.registry import Runtimes

PLACEHOLDER_UID: Final = "00000000-0000-0000-0000-000000000000"

_TRAINJOB: Final = "TrainJob"
_GENERATED: Final = "xxxxx"
"""What stands for the letters that an API server adds to `generateName`."""


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
    """Build what the TrainJobs need. Unknown fields are warned of, and dropped as by an API server.

    Raises Unreachable where a reader that asks a cluster cannot.
    """
    rendering = Rendering()
    for document in documents:
        report = Report(document)
        rendering.reports.append(report)
        if not is_runtime(document) and not is_trainjob(document):
            continue
        value, unknown = document.created()
        report.warnings += [f"{path}: unknown field" for path in unknown]
        if is_runtime(document):
            continue
        job = _read_trainjob(value, report, namespace)
        if job is not None and job.spec.managed_by != TRAINJOB_CONTROLLER:
            report.warnings.append(f"nothing is built: the TrainJob is managed by {job.spec.managed_by}")
        elif job is not None:
            rendering.objects += await _plan(job, runtimes, report)
    return rendering


async def validate(documents: Iterable[Document], runtimes: Runtimes, namespace: str) -> Rendering:
    """Judge TrainJobs and runtimes as admission would. Unknown fields are errors, as they are to kubectl, and so is an
    object that does not say what it is.

    Raises Unreachable where a reader that asks a cluster cannot.
    """
    rendering = Rendering()
    for document in documents:
        report = Report(document)
        rendering.reports.append(report)
        if is_runtime(document) or is_trainjob(document):
            value, unknown = document.created()
            report.add(Findings([fields.forbidden(Path(path), "unknown field") for path in unknown]))
            report.add(Findings(validate_quantities(value, document.gvk.kind)))
            await _judge(value, runtimes, report, namespace)
        else:
            report.errors += _identity_errors(document)
    return rendering


def _identity_errors(document: Document) -> list[str]:
    """Why an object is of no kind that there is, as far as we know: it may be a TrainJob that was meant."""
    given = {field: document.value.get(field) for field in ("apiVersion", "kind")}
    if missing := [field for field, value in given.items() if not value or not isinstance(value, str)]:
        return [str(fields.required(Path(field))) for field in missing]
    if document.gvk.group == GROUP:
        return [f"there is no kind {document.gvk.kind} in {GROUP}"]
    if document.gvk.kind in (_TRAINJOB, *KINDS):
        return [str(fields.not_supported(Path("apiVersion"), given["apiVersion"], [API_VERSION]))]
    return []


def _validate_name(value: JsonObject) -> ErrorList:
    """What an API server wants of every object, before it asks anybody else."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") or metadata.get("generateName"):
        return []
    return [fields.required(Path("metadata.name"), "name or generateName is required")]


async def _plan(job: TrainJob, runtimes: Runtimes, report: Report) -> list[JsonObject]:
    try:
        plan = await runtimes.of(job.spec.runtime_ref).plan(job)
    except (Rejected, RuntimeNotFound) as rejected:
        report.add(rejected.findings)
    except (PlanError, PluginError) as error:
        _add_failure(error, report)
    else:
        report.warnings += plan.warnings
        return [component.body for component in plan.components]
    return []


async def _judge(value: JsonObject, runtimes: Runtimes, report: Report, namespace: str) -> None:
    if is_runtime(report.document):
        report.add(Findings(_validate_name(value)))
        report.add(validate_runtime(report.document.gvk.kind, value))
        return
    job = _read_trainjob(value, report, namespace)
    if job is None:
        return
    try:
        report.add(await runtimes.of(job.spec.runtime_ref).validate(None, job))
    except (PlanError, PluginError) as error:
        _add_failure(error, report)


def _add_failure(error: PlanError | PluginError, report: Report) -> None:
    """Take a failure over into a report, unless it is none of the document's."""
    if isinstance(error.__cause__, Unreachable):
        raise error.__cause__
    report.errors.append(str(error))


def _read_trainjob(value: JsonObject, report: Report, namespace: str) -> TrainJob | None:
    """The TrainJob as if it had just been created; none where it has no name, or does not decode."""
    if errors := _validate_name(value):
        report.add(Findings(errors))
        return None
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        if not metadata.get("name") and isinstance(prefix := metadata.get("generateName"), str):
            metadata["name"] = prefix + _GENERATED
        metadata["namespace"] = metadata.get("namespace") or namespace
        metadata["uid"] = metadata.get("uid") or PLACEHOLDER_UID
    job = decode(TrainJob, value)
    if isinstance(job, list):
        report.add(Findings(job))
        return None
    return job
