"""Admission of the two kinds of runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ktrainer.framework.findings import Findings
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, allowed
from ktrainer.runtime.validation import validate_runtime
from ktrainer.webhook.answer import answer_of
from ktrainer.webhook.update import is_harmless

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource


class RuntimeValidator:
    """Judges runtimes of one kind. Holds nothing."""

    def __init__(self, resource: Resource, *, refuses_updates: bool) -> None:
        """Without `refuses_updates`, what is wrong with an update is only warned of."""
        self._kind = resource.kind
        self._refuses_updates = refuses_updates

    async def handle(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer a request about a runtime."""
        if request.object is None or is_harmless(request):
            return allowed()
        findings = validate_runtime(self._kind, orjson.loads(request.object))
        if request.old_object is not None and not self._refuses_updates:
            # A warning has little room, and the value would take most of it.
            told = [f"{error.path}: {error.detail}" for error in findings.errors]
            findings = Findings(warnings=[*told, *findings.warnings])
        return answer_of(findings)
