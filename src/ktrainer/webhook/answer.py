"""From what validation has found to what the API server is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.kube.fields import message_of
from ktrainer.machinery.admission.hook import AdmissionResponse, allowed, denied

if TYPE_CHECKING:
    from ktrainer.framework.findings import Findings


def answer_of(findings: Findings) -> AdmissionResponse:
    """Refuse with all errors at once, or allow; the warnings go along with both."""
    warnings = tuple(findings.warnings)
    if findings.errors:
        return denied(message_of(findings.errors), warnings=warnings)
    return allowed(warnings=warnings)
