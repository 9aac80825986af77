from collections.abc import Iterator
from contextlib import closing

import pytest

from clusters.api import Api, Object, Refused
from clusters.audit import events_of
from clusters.folder import Folder


@pytest.fixture
def user(cluster: Folder) -> Iterator[Api]:
    with closing(Api(cluster.kubeconfig("user"))) as api:
        yield api


@pytest.fixture
def trainer(cluster: Folder) -> Iterator[Api]:
    with closing(Api(cluster.kubeconfig("trainer"))) as api:
        yield api


def configmap(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_the_user_should_edit_what_is_in_namespaces(user: Api, namespace: str) -> None:
    assert user.create(f"/api/v1/namespaces/{namespace}/configmaps", configmap("mine"))["metadata"]["uid"]
    assert user.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets")["items"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nodes",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ],
)
def test_the_user_should_not_see_what_belongs_to_the_cluster(user: Api, path: str) -> None:
    with pytest.raises(Refused, match=r'403 Forbidden: .* is forbidden: User "user" cannot list resource'):
        user.get(path)


@pytest.mark.parametrize("path", ["/api/v1/secrets", "/api/v1/pods", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"])
def test_the_trainer_should_have_no_rights_before_its_roles_are_installed(trainer: Api, path: str) -> None:
    with pytest.raises(Refused, match="403 Forbidden"):
        trainer.get(path)


def test_a_denial_should_stand_in_the_audit_log_of_that_user(cluster: Folder, trainer: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    with pytest.raises(Refused, match="403"):
        trainer.get(path)
    events = [
        event for event in events_of(cluster.file("audit", "audit.log"), "trainer") if event["requestURI"] == path
    ]
    assert [(event["verb"], event["responseStatus"]["code"]) for event in events] == [("list", 403)]
