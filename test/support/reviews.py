"""AdmissionReviews: building questions, and checking answers as an API server does."""

from __future__ import annotations

import base64
from typing import Any

import orjson


def review(uid: str = "u-1", **request: Any) -> bytes:
    """The body of a question."""
    return orjson.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "name": "n",
                "namespace": "s",
                "operation": "CREATE",
                "userInfo": {"username": "me"},
                "object": {"metadata": {"name": "n"}},
                **request,
            },
        }
    )


def accept(body: bytes, uid: str, *, is_mutating: bool) -> dict[str, Any]:
    """Check an answer as strictly as an API server, and return its response with the patch decoded."""
    document = orjson.loads(body)
    assert set(document) == {"apiVersion", "kind", "response"}
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = document["response"]
    assert set(response) <= {"uid", "allowed", "status", "patch", "patchType", "warnings"}
    assert response["uid"] == uid
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    if "patch" in response:
        assert is_mutating
        assert response["allowed"]
        assert response["patchType"] == "JSONPatch"
        response["patch"] = orjson.loads(base64.b64decode(response["patch"], validate=True))
        assert response["patch"]
    if not response["allowed"]:
        status = response["status"]
        assert status["status"] == "Failure"
        assert 400 <= status["code"] < 600
        assert isinstance(status["message"], str)
        assert isinstance(status["reason"], str)
    for warning in response.get("warnings", []):
        assert 0 < len(warning) <= 120
        assert warning.isprintable()
    assert sum(map(len, response.get("warnings", []))) <= 4096
    return response
