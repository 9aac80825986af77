"""Reads the manager's configuration file. Every field and value is checked, and refused with the path of its field."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ktrainer.api.configuration import Configuration
from ktrainer.api.decoding import decode
from ktrainer.api.duration import format_duration
from ktrainer.api.gates import validate_gates
from ktrainer.api.yamltext import YamlError, parse_documents
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from ktrainer.api.configuration import LeaderElection, Metrics, Plugins
    from ktrainer.kube.fields import ErrorList

# Two tries to renew a lease may be this much further apart than the period says, lest all managers try at once.
_JITTER: Final = 1.2


def parse_configuration(text: str) -> Configuration | ErrorList:
    """Read the text of a file; a non-empty list of errors if it is bad. A text that says nothing gives the defaults."""
    try:
        documents = [document for document in parse_documents(text) if document is not None]
    except YamlError as error:
        return [fields.invalid(Path(), "", f"not YAML: {error}")]
    if len(documents) > 1:
        return [fields.invalid(Path(), len(documents), "must be one document")]
    configuration = decode(Configuration, _without_nulls(documents[0]) if documents else {}, strict=True)
    if isinstance(configuration, list):
        return configuration
    return _validate(configuration) or configuration


def _without_nulls(value: Any) -> Any:
    """The same without fields that are null: they stand for the default."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _validate(configuration: Configuration) -> ErrorList:
    return [
        *_validate_election(Path("leaderElection"), configuration.leader_election),
        *_validate_metrics(Path("metrics"), configuration.metrics),
        *validate_gates(Path("featureGates"), configuration.feature_gates),
        *_validate_plugins(Path("plugins"), configuration.plugins),
    ]


def _validate_election(path: Path, election: LeaderElection) -> ErrorList:
    # What is switched off is not looked at, as in the original.
    if not election.leader_elect:
        return []
    errors: ErrorList = []
    if election.resource_lock != "leases":
        errors.append(fields.not_supported(path.child("resourceLock"), election.resource_lock, ["leases"]))
    for field, duration, floor, what in (
        ("retryPeriod", election.retry_period, timedelta(0), "zero"),
        ("renewDeadline", election.renew_deadline, election.retry_period * _JITTER, f"{_JITTER} times retryPeriod"),
        ("leaseDuration", election.lease_duration, election.renew_deadline, "renewDeadline"),
    ):
        if duration <= floor:
            value = format_duration(duration)
            errors.append(fields.invalid(path.child(field), value, f"must be greater than {what}"))
    return errors


def _validate_metrics(path: Path, metrics: Metrics) -> ErrorList:
    if not metrics.auth.enabled or metrics.secure_serving:
        return []
    return [fields.invalid(path.child("auth", "enabled"), "true", "needs secureServing, lest tokens go in plain text")]


def _validate_plugins(path: Path, plugins: Plugins) -> ErrorList:
    errors: ErrorList = []
    for field in ("disabled", "order", "external"):
        names: list[str] = getattr(plugins, field)
        for position, name in enumerate(names):
            if name in names[:position]:
                errors.append(fields.duplicate(path.child(field).index(position), name))
    if "jobset" in plugins.disabled:
        errors.append(fields.invalid(path.child("disabled"), "jobset", "without it no TrainJob can run"))
    return errors
