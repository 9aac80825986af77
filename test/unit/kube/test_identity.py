from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrainer.kube.identity import GroupKind, GroupVersionKind, ObjectKey, Resource

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)

NAMES = st.text(min_size=1).filter(lambda name: "/" not in name)


@pytest.mark.parametrize(
    "path, expected",
    [
        pytest.param(JOBS.path(), "/apis/batch/v1/jobs", id="all namespaces"),
        pytest.param(JOBS.path("team"), "/apis/batch/v1/namespaces/team/jobs", id="one namespace"),
        pytest.param(JOBS.path("team", "train"), "/apis/batch/v1/namespaces/team/jobs/train", id="one object"),
        pytest.param(
            JOBS.path("team", "train", "status"), "/apis/batch/v1/namespaces/team/jobs/train/status", id="subresource"
        ),
        pytest.param(SECRETS.path("team", "key"), "/api/v1/namespaces/team/secrets/key", id="core group"),
        pytest.param(NODES.path(name="n1"), "/api/v1/nodes/n1", id="cluster-scoped"),
        pytest.param(NODES.path("", "a/b?c#d %"), "/api/v1/nodes/a%2Fb%3Fc%23d%20%25", id="quoted"),
    ],
)
def test_a_resource_should_know_its_path(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", [".", ".."])
def test_a_dot_segment_should_never_reach_a_path(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        JOBS.path("team", name)
    with pytest.raises(ValueError, match="not a name"):
        JOBS.path(name)
    assert not ObjectKey("team", name).may_exist
    assert not ObjectKey(name, "train").may_exist


def test_an_object_needs_a_name_and_maybe_a_namespace_to_be_there() -> None:
    assert ObjectKey("team", "train").may_exist
    assert ObjectKey("", "n1").may_exist
    assert not ObjectKey("team", "").may_exist


def test_a_path_should_fit_the_scope_of_its_resource() -> None:
    with pytest.raises(ValueError, match="not namespaced"):
        NODES.path("team", "n1")
    with pytest.raises(ValueError, match="without a namespace"):
        JOBS.path(name="train")
    with pytest.raises(ValueError, match="needs the name"):
        JOBS.path("team", subresource="status")


@pytest.mark.parametrize("api_version", ["v1", "batch/v1", "trainer.kubeflow.org/v1alpha1"])
def test_an_api_version_should_survive_parsing(api_version: str) -> None:
    assert GroupVersionKind.parse(api_version, "K").api_version == api_version


def test_kinds_should_name_themselves() -> None:
    gvk = GroupVersionKind.parse("batch/v1", "Job")
    assert gvk == GroupVersionKind("batch", "v1", "Job") == JOBS.gvk
    assert gvk.group_kind == GroupKind("batch", "Job") == JOBS.group_kind
    assert JOBS.api_version == "batch/v1"
    assert SECRETS.api_version == "v1"
    assert str(gvk) == "batch/v1, Kind=Job"
    assert str(gvk.group_kind) == "Job.batch"
    assert str(SECRETS.group_kind) == "Secret"


def test_a_key_should_read_as_namespace_and_name() -> None:
    assert str(ObjectKey("team", "train")) == "team/train"
    assert str(ObjectKey("", "train")) == "train"
    assert ObjectKey.parse("team/train") == ObjectKey("team", "train")
    assert ObjectKey.parse("train") == ObjectKey("", "train")


@given(st.one_of(st.just(""), NAMES), NAMES)
def test_any_key_should_survive_its_spelling(namespace: str, name: str) -> None:
    assert ObjectKey.parse(str(ObjectKey(namespace, name))) == (namespace, name)


@pytest.mark.parametrize("text", ["", "/", "/a", "a/", "a/b/c", "a//b"])
def test_a_malformed_key_should_be_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        ObjectKey.parse(text)
