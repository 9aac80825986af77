from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.kube import errors
from ktrainer.kube.errors import ApiError, Cause, Details, error_of, status_error_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(["kind", "code", "reason", "message", "details", "causes"])


def status(code: int, reason: str, **fields: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "no", **fields}).encode()


@pytest.mark.parametrize(
    "code, reason, kind, permanent",
    [
        (400, "BadRequest", errors.BadRequest, True),
        (401, "Unauthorized", errors.Unauthorized, False),
        (403, "Forbidden", errors.Forbidden, True),
        (404, "NotFound", errors.NotFound, False),
        (405, "MethodNotAllowed", errors.MethodNotSupported, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (409, "Conflict", errors.Conflict, False),
        (410, "Expired", errors.Expired, False),
        (410, "Gone", errors.Expired, False),
        (413, "RequestEntityTooLarge", errors.RequestTooLarge, True),
        (422, "Invalid", errors.Invalid, True),
        (429, "TooManyRequests", errors.TooManyRequests, False),
        (500, "InternalError", errors.InternalError, False),
        (500, "ServerTimeout", errors.ServerTimeout, False),
        (503, "ServiceUnavailable", errors.ServiceUnavailable, False),
        (504, "Timeout", errors.Timeout, False),
        (415, "UnsupportedMediaType", ApiError, False),
        (500, "StorageReadError", errors.InternalError, False),
        (409, "SomethingNew", errors.Conflict, False),
    ],
)
def test_a_reason_should_choose_the_error_and_the_code_where_it_is_unknown(
    code: int, reason: str, kind: type[ApiError], permanent: bool
) -> None:
    for error in (error_of(code, status(code, reason)), status_error_of(json.loads(status(code, reason)))):
        assert type(error) is kind
        assert (error.code, error.reason, error.message) == (code, reason, "no")
        assert error.is_permanent is permanent


def test_details_should_tell_which_object_and_why() -> None:
    body = status(
        422,
        "Invalid",
        details={
            "name": "train",
            "group": "batch",
            "kind": "Job",
            "uid": "u",
            "causes": [{"reason": "FieldValueRequired", "message": "missing", "field": "spec.a"}],
        },
    )
    assert error_of(422, body).details == Details(
        "train", "batch", "Job", "u", (Cause("FieldValueRequired", "missing", "spec.a"),)
    )


def test_a_gone_resource_version_should_be_recognised_inside_a_watch() -> None:
    error = status_error_of({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410})
    assert isinstance(error, errors.Expired)
    assert isinstance(status_error_of({"reason": "Gone"}), errors.Expired)
    assert isinstance(status_error_of({"code": 410}), errors.Expired)
    assert type(status_error_of({})) is ApiError


@pytest.mark.parametrize(
    "error, expected",
    [
        (error_of(504, status(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})), True),
        (error_of(504, status(504, "Timeout", message="Too large resource version: 9, current: 5")), True),
        (error_of(504, status(504, "Timeout")), False),
    ],
)
def test_a_resource_version_of_the_future_should_be_told_from_other_timeouts(error: ApiError, expected: bool) -> None:
    assert isinstance(error, errors.Timeout)
    assert error.resource_version_too_large is expected


def test_a_terminating_namespace_should_be_told_from_other_refusals() -> None:
    terminating = status(403, "Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]})
    assert error_of(403, terminating).namespace_terminating
    assert not error_of(403, status(403, "Forbidden")).namespace_terminating


def test_the_header_should_beat_the_wait_inside_a_status() -> None:
    body = status(429, "TooManyRequests", details={"retryAfterSeconds": 7})
    assert error_of(429, body).retry_after == 7.0
    assert error_of(429, body, retry_after=0.0).retry_after == 0.0
    assert error_of(429, status(429, "TooManyRequests")).retry_after is None
    assert error_of(503, b"", retry_after=2.5).retry_after == 2.5


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "the server gave no explanation"),
        (b"<html>bad gateway</html>\n", "<html>bad gateway</html>"),
        (b'{"kind": "Status", "reas', '{"kind": "Status", "reas'),
        (b'{"error": "x"}', '{"error": "x"}'),
        (b"[]", "[]"),
        (b"\xff\xfehello", "hello"),
        (b"[" * 100_000, "[" * 2048),
        ("é".encode() * 2000, "é" * 1024),
    ],
)
def test_a_body_that_is_no_status_should_become_an_error_by_its_code(body: bytes, message: str) -> None:
    error = error_of(503, body)
    assert type(error) is errors.ServiceUnavailable
    assert error.message == message
    assert type(error_of(502, body)) is ApiError


def test_an_error_should_read_well() -> None:
    assert str(error_of(404, status(404, "NotFound"))) == "404 NotFound: no"
    assert str(error_of(502, b"oops")) == "502: oops"
    assert str(error_of(502, b'{"kind": "Status"}')) == "502: the server gave no explanation"


@given(st.integers(), st.dictionaries(FIELDS, JSON))
def test_no_status_should_be_too_odd(code: int, fields: dict[str, object]) -> None:
    body = json.dumps({"kind": "Status", **fields}).encode()
    assert error_of(code, body).code == code
    assert isinstance(status_error_of(fields), ApiError)


def test_a_number_that_nobody_can_mean_should_count_as_absent() -> None:
    error = status_error_of({"code": 10**400, "details": {"retryAfterSeconds": 10**400}})
    assert (error.code, error.retry_after) == (0, None)


@given(st.binary())
def test_no_body_should_be_too_odd(body: bytes) -> None:
    assert isinstance(error_of(500, body), ApiError)
