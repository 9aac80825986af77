"""AdmissionReview on the wire (admission.k8s.io/v1): bytes to request, and answer to bytes. Pure.

Whatever is encoded here passes the API server's checks: it carries the uid, and a patch only together with its type.
"""

from __future__ import annotations

import base64

import msgspec
import orjson

from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, Operation

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

MAX_WARNING_CHARS = 120
"""A longer warning is cut."""

MAX_WARNINGS = 32
"""Further ones are left out. At these two figures the API server's limit of 4096 characters in all is never reached,
from which on it would cut every warning by itself."""

_MAX_ERROR_CHARS = 200


class BadReview(ValueError):
    """A body that is no review that we could answer."""


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: AdmissionRequest


class _Identified(msgspec.Struct):
    uid: str = ""


class _Envelope(msgspec.Struct):
    request: _Identified = msgspec.field(default_factory=_Identified)


_REVIEWS = msgspec.json.Decoder(_Review)
_ENVELOPES = msgspec.json.Decoder(_Envelope)


def decode_review(body: bytes) -> AdmissionRequest:
    """Read the question in a review; raises BadReview, and nothing else, for any other body."""
    try:
        review = _REVIEWS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # Parts of the body may stand in the error, at any length.
        raise BadReview(f"the body is not an AdmissionReview: {str(error)[:_MAX_ERROR_CHARS]}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadReview(f"the body is not an AdmissionReview of {API_VERSION}")
    if not review.request.uid:
        raise BadReview("the AdmissionReview has no uid")
    return review.request


def uid_of(body: bytes) -> str:
    """Read at least the uid from a body that may be anything; empty where there is none to be found."""
    try:
        return _ENVELOPES.decode(body).request.uid
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def encode_review(uid: str, response: AdmissionResponse) -> bytes:
    """Write an answer; raises TypeError when the handler put something into it that is not JSON."""
    answer: dict[str, object] = {"uid": uid, "allowed": response.is_allowed}
    if not response.is_allowed:
        answer["status"] = {
            "status": "Failure",
            "code": min(max(response.code, 400), 599),
            "reason": response.reason,
            "message": response.message,
        }
    if response.patch:
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(orjson.dumps(response.patch)).decode()
    if warnings := tidy(response.warnings):
        answer["warnings"] = warnings
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": answer})


def find_flaw(response: object, hook: Hook, request: AdmissionRequest) -> str | None:
    """What an API server would not take from this hook, or would misunderstand; None where the answer is sound."""
    if not isinstance(response, AdmissionResponse):
        return f"the handler returned {type(response).__name__}"
    if not response.patch:
        return None
    if not hook.is_mutating:
        return "a validating hook must not change the object"
    if request.operation is Operation.DELETE:
        return "an object that is being deleted cannot be changed"
    return None if response.is_allowed else "a refused object cannot be changed"


def tidy(warnings: tuple[str, ...]) -> list[str]:
    """Warnings that a header can carry: short, each once, without control characters."""
    lines = (_cut(" ".join("".join(map(_printable, warning)).split())) for warning in warnings)
    return [line for line in dict.fromkeys(lines) if line][:MAX_WARNINGS]


def _printable(char: str) -> str:
    if char.isspace():
        return " "
    # What is dropped includes escapes, changes of writing direction, and halves of surrogate pairs.
    return char if char.isprintable() else ""


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WARNING_CHARS else line[: MAX_WARNING_CHARS - 1] + "…"
