import asyncio
from random import Random
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ktrainer.api.resources import JOBSETS, PODS
from ktrainer.kube.errors import Forbidden, NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.serving.reviews import MAX_REMEMBERED, Reviews
from ktrainer.statusserver.authorizer import MEMBER_SECONDS, ReportAuthorizer, Reporter
from ktrainer.statusserver.refusal import Refusal
from ktrainer.statusserver.report import Target
from support.virtualtime import VirtualClock

KEY = ObjectKey("team-a", "demo")
TARGET = Target(KEY, "u1")
POD = ObjectKey("team-a", "demo-node-0-0-xyz")
REPORTER = Reporter(POD, "p1")
AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/demo/status"
EXTRA = {
    "authentication.kubernetes.io/pod-name": [POD.name],
    "authentication.kubernetes.io/pod-uid": ["p1"],
}


def pod(**overrides: Any) -> dict[str, Any]:
    labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/jobset-uid": "j1"}
    return {"namespace": "team-a", "name": POD.name, "uid": "p1", "labels": labels} | overrides


def jobset(**overrides: Any) -> dict[str, Any]:
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "demo", "uid": "u1"}
    metadata = {"namespace": "team-a", "name": "demo", "uid": "j1", "ownerReferences": [{**owner, "controller": True}]}
    return metadata | overrides


class Api:
    """The API server: knows one token, pods and JobSets."""

    def __init__(self) -> None:
        self.user: dict[str, Any] = {"username": "system:serviceaccount:team-a:default", "extra": EXTRA}
        self.objects = {(PODS, POD): pod(), (JOBSETS, KEY): jobset()}
        self.reads: list[Resource] = []
        self.fault: Exception | None = None

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        if self.fault is not None:
            raise self.fault
        spec = orjson.loads(body)["spec"]
        if spec["token"] != "good" or AUDIENCE not in spec["audiences"]:
            return orjson.dumps({"status": {"authenticated": False}})
        return orjson.dumps({"status": {"authenticated": True, "user": self.user, "audiences": [AUDIENCE]}})

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        self.reads.append(resource)
        if (resource, key) not in self.objects:
            raise NotFound(404, "NotFound", "no")
        return orjson.dumps({"metadata": self.objects[resource, key], "spec": {}})


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def authorizer(api: Api, virtual_clock: VirtualClock) -> ReportAuthorizer:
    return ReportAuthorizer(Reviews(api, virtual_clock, Random(1)), api, virtual_clock)


async def code_of(authorizer: ReportAuthorizer, header: str | None, key: ObjectKey = KEY) -> int:
    try:
        await authorizer.recognise(header, key)
    except Refusal as refusal:
        return refusal.code
    return 200


async def is_member(authorizer: ReportAuthorizer, reporter: Reporter = REPORTER, target: Target = TARGET) -> bool:
    try:
        await authorizer.check(reporter, target)
    except Refusal as refusal:
        return refusal.code != 403
    return True


async def test_a_pod_of_the_namespace_should_be_recognised_by_its_token(authorizer: ReportAuthorizer) -> None:
    assert await authorizer.recognise("Bearer good", KEY) == REPORTER


@pytest.mark.parametrize("header", [None, "", "Basic good", "Bearer bad", "Bearer "])
async def test_without_a_good_token_there_should_be_no_access(authorizer: ReportAuthorizer, header: str | None) -> None:
    assert await code_of(authorizer, header) == 403


@pytest.mark.parametrize("key", [ObjectKey("team-a", "other"), ObjectKey("team-b", "demo")])
async def test_a_token_for_another_trainjob_should_give_no_access(authorizer: ReportAuthorizer, key: ObjectKey) -> None:
    assert await code_of(authorizer, "Bearer good", key) == 403


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"username": "system:serviceaccount:team-b:default", "extra": EXTRA}, id="other namespace"),
        pytest.param({"username": "system:serviceaccount:team-a", "extra": EXTRA}, id="no account"),
        pytest.param({"username": "admin", "extra": EXTRA}, id="a person"),
        pytest.param({"username": "system:serviceaccount:team-a:default"}, id="not bound"),
        pytest.param(
            {
                "username": "system:serviceaccount:team-a:default",
                "extra": {"authentication.kubernetes.io/node-name": ["n"]},
            },
            id="bound to a node",
        ),
        pytest.param(
            {
                "username": "system:serviceaccount:team-a:default",
                "extra": EXTRA | {"authentication.kubernetes.io/pod-uid": [""]},
            },
            id="no uid",
        ),
    ],
)
async def test_who_is_no_pod_of_the_namespace_should_have_no_access(
    api: Api, authorizer: ReportAuthorizer, user: dict[str, Any]
) -> None:
    api.user = user
    assert await code_of(authorizer, "Bearer good") == 403


async def test_nobody_should_have_access_while_the_api_server_cannot_be_asked(
    api: Api, authorizer: ReportAuthorizer
) -> None:
    api.fault = Forbidden(403, "Forbidden", "no reviews for you")
    assert await code_of(authorizer, "Bearer good") == 500


async def test_a_pod_of_the_jobset_should_be_part_of_the_trainjob(authorizer: ReportAuthorizer) -> None:
    assert await is_member(authorizer)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(pod(uid="p2"), id="a namesake"),
        pytest.param(pod(labels={}), id="no labels"),
        pytest.param(pod(labels=pod()["labels"] | {"jobset.sigs.k8s.io/jobset-name": "other"}), id="other JobSet"),
        pytest.param(pod(labels=pod()["labels"] | {"jobset.sigs.k8s.io/jobset-uid": "j0"}), id="former JobSet"),
        pytest.param(pod(labels={"jobset.sigs.k8s.io/jobset-name": "demo"}), id="no uid of a JobSet"),
        pytest.param(None, id="gone"),
    ],
)
async def test_any_other_pod_should_not_be_part_of_it(
    api: Api, authorizer: ReportAuthorizer, metadata: dict[str, Any] | None
) -> None:
    del api.objects[PODS, POD]
    if metadata is not None:
        api.objects[PODS, POD] = metadata
    assert not await is_member(authorizer)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(jobset(ownerReferences=[]), id="nobody's"),
        pytest.param(jobset(ownerReferences=[jobset()["ownerReferences"][0] | {"uid": "u0"}]), id="a namesake's"),
        pytest.param(
            jobset(ownerReferences=[jobset()["ownerReferences"][0] | {"controller": False}]), id="not controlled"
        ),
        pytest.param(None, id="gone"),
    ],
)
async def test_a_pod_of_a_jobset_that_is_not_the_trainjobs_should_not_be_part_of_it(
    api: Api, authorizer: ReportAuthorizer, metadata: dict[str, Any] | None
) -> None:
    del api.objects[JOBSETS, KEY]
    if metadata is not None:
        api.objects[JOBSETS, KEY] = metadata
    assert not await is_member(authorizer)


async def test_membership_should_be_remembered_for_a_while(api: Api, authorizer: ReportAuthorizer) -> None:
    assert await is_member(authorizer)
    assert await is_member(authorizer)
    assert api.reads == [PODS, JOBSETS]
    await asyncio.sleep(MEMBER_SECONDS)
    assert await is_member(authorizer)
    assert len(api.reads) == 4


async def test_membership_should_not_count_for_a_namesake(authorizer: ReportAuthorizer) -> None:
    assert await is_member(authorizer)
    assert not await is_member(authorizer, target=Target(KEY, "u2"))
    assert not await is_member(authorizer, reporter=Reporter(POD, "p2"))


async def test_what_is_remembered_should_be_limited(api: Api, authorizer: ReportAuthorizer) -> None:
    for number in range(MAX_REMEMBERED + 1):
        api.objects[PODS, POD] = pod(uid=str(number))
        assert await is_member(authorizer, Reporter(POD, str(number)))
    before = len(api.reads)
    assert await is_member(authorizer, Reporter(POD, str(MAX_REMEMBERED)))
    assert len(api.reads) == before
    assert not await is_member(authorizer, Reporter(POD, "0"))


async def test_tokens_should_never_be_logged_or_told(api: Api, authorizer: ReportAuthorizer) -> None:
    with capture_logs() as logs, pytest.raises(Refusal) as caught:
        await authorizer.recognise("Bearer t0ken", KEY)
    api.fault = OSError("t0ken was refused")
    with capture_logs() as more, pytest.raises(Refusal) as caught_later:
        await authorizer.recognise("Bearer t0ken2", KEY)
    assert "t0ken" not in str(logs) + str(more) + str(caught.value) + str(caught_later.value)
