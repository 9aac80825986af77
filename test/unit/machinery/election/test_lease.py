from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.lease import Lease, MalformedLease, build_claim, build_release, parse_lease
from support.jsonvalues import VALUES

KEY = ObjectKey("system", "trainer")
NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
AT = "2026-01-02T03:04:05.000006Z"
EARLIER = "2026-01-01T00:00:00.000000Z"


def body(spec: Any, **metadata: Any) -> bytes:
    return orjson.dumps(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "trainer", "namespace": "system", "resourceVersion": "7"} | metadata,
            "spec": spec,
        }
    )


def lease(**spec: Any) -> Lease:
    return parse_lease(body(spec))


def claim(former: Lease | None) -> dict[str, Any]:
    written: dict[str, Any] = orjson.loads(build_claim(former, KEY, "us", 15, NOW))
    return written


def test_a_lease_should_be_read() -> None:
    read = lease(holderIdentity="a", leaseDurationSeconds=15, leaseTransitions=3)
    assert (read.resource_version, read.holder, read.duration_seconds, read.problems) == ("7", "a", 15, ())


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None}, {"holderIdentity": ""}])
def test_a_lease_without_holder_should_be_free(spec: Any) -> None:
    assert parse_lease(body(spec)).holder == ""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>502</html>", id="HTML"),
        pytest.param(b'{"kind": "Lease", "metadata"', id="cut off"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"kind": "Status", "metadata": {"resourceVersion": "1"}}', id="other kind"),
        pytest.param(b'{"kind": "Lease", "metadata": []}', id="no metadata"),
        pytest.param(b'{"kind": "Lease", "metadata": {"resourceVersion": ""}}', id="no version"),
        pytest.param(b'{"kind": "Lease", "metadata": {"resourceVersion": 5}}', id="numeric version"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_an_answer_that_is_no_lease_should_be_called_so(answer: bytes) -> None:
    with pytest.raises(MalformedLease):
        parse_lease(answer)


@pytest.mark.parametrize(
    "spec, problem",
    [
        ([1], "spec is [1]"),
        ({"holderIdentity": 5}, "holderIdentity is 5"),
        ({"holderIdentity": "a", "leaseDurationSeconds": "15"}, "leaseDurationSeconds is '15'"),
        ({"holderIdentity": "a", "leaseDurationSeconds": -1}, "leaseDurationSeconds is -1"),
        ({"holderIdentity": "a", "leaseDurationSeconds": True}, "leaseDurationSeconds is True"),
    ],
)
def test_what_cannot_be_understood_should_be_named(spec: Any, problem: str) -> None:
    assert parse_lease(body(spec)).problems == (problem,)


@pytest.mark.parametrize("spec", [[1], {"holderIdentity": 5}])
def test_a_holder_that_cannot_be_understood_should_not_look_like_a_free_lease(spec: Any) -> None:
    assert parse_lease(body(spec)).holder is None


@given(VALUES, VALUES, VALUES, VALUES)
def test_garbage_should_never_raise_and_should_be_replaced_by_a_proper_claim(
    holder: Any, seconds: Any, transitions: Any, acquired: Any
) -> None:
    read = lease(
        holderIdentity=holder, leaseDurationSeconds=seconds, leaseTransitions=transitions, acquireTime=acquired
    )
    spec = claim(read)["spec"]
    assert spec["acquireTime"] == AT
    assert isinstance(spec["leaseTransitions"], int)
    assert parse_lease(body(spec)).problems == ()


def test_a_claim_on_nothing_should_be_a_new_lease() -> None:
    assert claim(None) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "trainer", "namespace": "system"},
        "spec": {
            "holderIdentity": "us",
            "leaseDurationSeconds": 15,
            "acquireTime": AT,
            "renewTime": AT,
            "leaseTransitions": 0,
        },
    }


def test_a_renewal_should_keep_when_and_how_often_the_lease_was_acquired() -> None:
    spec = claim(lease(holderIdentity="us", leaseTransitions=3, acquireTime=EARLIER, renewTime=EARLIER))["spec"]
    assert (spec["acquireTime"], spec["renewTime"], spec["leaseTransitions"]) == (EARLIER, AT, 3)


def test_taking_over_should_count_as_a_transition() -> None:
    spec = claim(lease(holderIdentity="other", leaseTransitions=3, acquireTime=EARLIER))["spec"]
    assert (spec["holderIdentity"], spec["acquireTime"], spec["leaseTransitions"]) == ("us", AT, 4)


def test_the_count_of_transitions_should_never_leave_its_32_bits() -> None:
    assert claim(lease(holderIdentity="other", leaseTransitions=2**31 - 1))["spec"]["leaseTransitions"] == 0


def test_an_acquire_time_that_is_none_should_be_replaced() -> None:
    assert claim(lease(holderIdentity="us", acquireTime="yesterday"))["spec"]["acquireTime"] == AT


def test_a_claim_should_name_the_version_it_replaces_and_keep_what_is_not_ours() -> None:
    former = parse_lease(
        body(
            {"holderIdentity": "a", "strategy": "Oldest", "preferredHolder": "b"}, labels={"a": "b"}, managedFields=[{}]
        )
    )
    written = claim(former)
    assert written["metadata"] == {
        "name": "trainer",
        "namespace": "system",
        "resourceVersion": "7",
        "labels": {"a": "b"},
    }
    assert (written["spec"]["strategy"], written["spec"]["preferredHolder"]) == ("Oldest", "b")


def test_a_release_should_leave_a_free_lease() -> None:
    former = lease(holderIdentity="us", leaseDurationSeconds=15, leaseTransitions=3, acquireTime=EARLIER)
    written = orjson.loads(build_release(former, NOW))
    assert written["metadata"]["resourceVersion"] == "7"
    assert written["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": AT,
        "renewTime": AT,
        "leaseTransitions": 3,
    }
