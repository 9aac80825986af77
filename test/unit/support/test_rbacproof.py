from typing import Any

from deployment.account import USER
from support.rbacproof import Right, forbidden_in, requests_of, shipped_rights, unused_in

WATCH = "/api/v1/pods?watch=1&sendInitialEvents=true"


def event(verb: str, resource: str, *, name: str = "", code: int = 200, **more: Any) -> dict[str, Any]:
    return {
        "verb": verb,
        "user": {"username": USER},
        "userAgent": "ktrainer/0.1.0 (linux/amd64) kubernetes/unknown/ktrainer-manager",
        "requestURI": f"/api/v1/{resource}",
        "objectRef": {"resource": resource, "name": name, "namespace": "kubeflow-system"},
        "responseStatus": {"code": code},
        **more,
    }


def test_a_request_that_was_forbidden_should_be_told() -> None:
    forbid = {"authorization.k8s.io/decision": "forbid"}
    events = [event("get", "pods", code=403, annotations=forbid), event("get", "nodes", code=404)]
    assert forbidden_in(events) == ["get /api/v1/pods"]
    assert forbidden_in([{**each, "user": {"username": "somebody"}} for each in events]) == []
    assert forbidden_in([{**each, "userAgent": "a test"} for each in events]) == []


def test_an_owner_reference_that_was_refused_should_be_told() -> None:
    message = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
    refused = event("create", "secrets", code=403, responseStatus={"code": 403, "message": message})
    assert forbidden_in([refused]) == ["create /api/v1/secrets"]


def test_a_right_should_be_unused_until_a_request_needs_it() -> None:
    right = Right("", "pods", "get")
    assert unused_in([right], [event("list", "pods")]) == [right]
    assert unused_in([right], [event("get", "pods", name="a")]) == []


def test_the_election_should_count_as_the_manager() -> None:
    agent = "ktrainer/0.1.0 (linux/amd64) kubernetes/unknown/leader-election"
    assert unused_in([Right("", "leases", "get")], [event("get", "leases", userAgent=agent)]) == []


def test_a_right_for_a_name_or_namespace_should_be_used_there_only() -> None:
    named, local = Right("", "pods", "get", ("a",)), Right("", "pods", "get", namespace="kubeflow-system")
    assert unused_in([named, local], [event("get", "pods", name="b")]) == [named]
    elsewhere = event("get", "pods", objectRef={"resource": "pods", "name": "a", "namespace": "other"})
    assert unused_in([named, local], [elsewhere]) == [local]


def test_an_apply_that_creates_should_need_both_rights() -> None:
    assert [each.verb for each in requests_of(event("patch", "pods", code=201))] == ["patch", "create"]
    assert [each.verb for each in requests_of(event("patch", "pods", code=200))] == ["patch"]


def test_a_watch_that_lists_should_need_both_rights() -> None:
    assert [each.verb for each in requests_of(event("watch", "pods", requestURI=WATCH))] == ["watch", "list"]
    assert [each.verb for each in requests_of(event("watch", "pods"))] == ["watch"]


def test_the_shipped_rights_should_leave_out_what_no_log_shows() -> None:
    rights = shipped_rights()
    assert Right("trainer.kubeflow.org", "trainjobs", "watch") in rights
    lease = Right("coordination.k8s.io", "leases", "update", ("trainer.kubeflow.org",), "kubeflow-system")
    assert lease in rights
    assert not [each for each in rights if each.resource == "trainjobs/finalizers"]
