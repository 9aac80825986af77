"""What API servers are told about the webhook: which requests to send, and where to.

`config/webhook` is generated from this, and the hooks are served at these paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import DISABLED, GROUP, WEBHOOK_VALIDATION
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.machinery.admission.hook import path_of

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

VALIDATOR: Final = f"validator.{GROUP}"
"""The name of the ValidatingWebhookConfiguration."""
DEFAULTER: Final = f"defaulter.{GROUP}"
"""The name of the MutatingWebhookConfiguration."""

SCALE: Final = "scale"
"""The subresource through which autoscalers set the number of nodes."""

_TIMEOUT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """One webhook of a configuration."""

    resource: Resource
    is_mutating: bool = False
    subresources: tuple[str, ...] = ()
    """Subresources of which updates are asked about, too. The status is none of them: while no webhook answers, the
    controller goes on."""
    is_avoidable: bool = False
    """Whether a label on an object keeps it from being asked about."""

    @property
    def name(self) -> str:
        """The webhook's name in its configuration."""
        verb = "defaulter" if self.is_mutating else "validator"
        return f"{verb}.{self.resource.kind.lower()}.{GROUP}"

    @property
    def path(self) -> str:
        """Where it is served."""
        return path_of(self.resource.gvk, is_mutating=self.is_mutating)


TRAINJOB_VALIDATOR: Final = Entry(TRAINJOBS, subresources=(SCALE,))
TRAINING_RUNTIME_VALIDATOR: Final = Entry(TRAINING_RUNTIMES, is_avoidable=True)
CLUSTER_TRAINING_RUNTIME_VALIDATOR: Final = Entry(CLUSTER_TRAINING_RUNTIMES, is_avoidable=True)
TRAINJOB_DEFAULTER: Final = Entry(TRAINJOBS, is_mutating=True)

ENTRIES: Final = (
    TRAINJOB_VALIDATOR,
    TRAINING_RUNTIME_VALIDATOR,
    CLUSTER_TRAINING_RUNTIME_VALIDATOR,
    TRAINJOB_DEFAULTER,
)


def build_configurations(service: str, namespace: str) -> list[JsonObject]:
    """The two webhook configurations, for a Service on port 443. Who is to be trusted is put in by the manager."""
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [_webhook(entry, service, namespace) for entry in ENTRIES if entry.is_mutating == is_mutating],
        }
        for kind, name, is_mutating in (
            ("ValidatingWebhookConfiguration", VALIDATOR, False),
            ("MutatingWebhookConfiguration", DEFAULTER, True),
        )
    ]


def _webhook(entry: Entry, service: str, namespace: str) -> JsonObject:
    webhook: JsonObject = {
        "name": entry.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": service, "namespace": namespace, "path": entry.path, "port": 443}},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "rules": [_rule(entry, ["CREATE", "UPDATE"], "")],
    }
    webhook["rules"] += [_rule(entry, ["UPDATE"], f"/{subresource}") for subresource in entry.subresources]
    if entry.is_avoidable:
        selector = {"key": WEBHOOK_VALIDATION, "operator": "NotIn", "values": [DISABLED]}
        webhook["objectSelector"] = {"matchExpressions": [selector]}
    return webhook


def _rule(entry: Entry, operations: list[str], suffix: str) -> JsonObject:
    resource = entry.resource
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": operations,
        "resources": [f"{resource.plural}{suffix}"],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
