from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.framework.component import Write
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.errors import SnapshotInvalid
from ktrainer.runtime.snapshot import (
    build_snapshot,
    check_reference,
    content_of,
    digest_of,
    parse_snapshot,
    text_of,
)
from support.training import UID, as_trainjob, blueprint, runtime, trainjob, trainjob_json

VALUE = runtime(mlPolicy={"numNodes": 2, "torch": {}})
TEXT = text_of(blueprint(VALUE))


def config_map(text: str | None = TEXT) -> dict[str, Any]:
    body = copy_of(build_snapshot(trainjob(), text or "").body)
    if text is None:
        body["data"] = {}
    return dict(body)


def with_digest(digest: str) -> TrainJob:
    return as_trainjob({**trainjob_json(), "status": {"runtimeDigest": digest}})


def test_a_snapshot_should_be_written_once_and_never_changed() -> None:
    component = build_snapshot(trainjob(), TEXT)
    assert component.write is Write.CREATE
    assert component.name == "demo-runtime-snapshot"
    assert component.body["immutable"] is True
    assert component.body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert component.body["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-name": "demo"}


def test_a_snapshot_should_come_back_as_the_runtime_that_it_was_made_from() -> None:
    assert TEXT.startswith(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata:\n  name: rt\nspec:\n"
    )
    assert parse_snapshot(content_of(config_map(), with_digest(digest_of(TEXT)))) == blueprint(VALUE)


def test_the_whole_object_of_the_original_should_be_readable() -> None:
    text = TEXT.replace("  name: rt\n", "  name: rt\n  uid: abc\n  resourceVersion: '7'\n  creationTimestamp: null\n")
    assert parse_snapshot(text) == blueprint(VALUE)


def test_a_snapshot_of_another_owner_should_be_refused() -> None:
    for owners in ([], [{"uid": "other", "controller": True}], [{"uid": UID, "controller": False}]):
        there = config_map()
        there["metadata"]["ownerReferences"] = owners
        with pytest.raises(SnapshotInvalid, match=r"^invalid runtime snapshot: .* another object; .* once it is gone"):
            content_of(there, trainjob())


def test_a_snapshot_without_its_key_should_be_refused() -> None:
    with pytest.raises(SnapshotInvalid, match="has no key runtime"):
        content_of(config_map(None), trainjob())


def test_a_snapshot_that_was_exchanged_should_be_refused() -> None:
    with pytest.raises(SnapshotInvalid, match="its content is not what was written: sha256:"):
        content_of(config_map(TEXT + "\n"), with_digest(digest_of(TEXT)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("a: 1\na: 2\n", "not YAML", id="twice the same key"),
        pytest.param("[]", "one object", id="no object"),
        pytest.param("", "one object", id="nothing"),
        pytest.param(f"{TEXT}---\n{TEXT}", "one object", id="two objects"),
        pytest.param(TEXT.replace("kind: ClusterTrainingRuntime", "kind: Pod"), "no runtime", id="another kind"),
        pytest.param(TEXT.replace("kind: ClusterTrainingRuntime\n", ""), "no runtime", id="without a kind"),
        pytest.param(TEXT.replace("/v1alpha1", "/v9", 1), "no runtime", id="another version"),
        pytest.param(
            TEXT.replace("replicatedJobs", "replicatedJobs: 1\n      x"), "must be of type array", id="malformed"
        ),
        pytest.param(f"{TEXT}x: &x [1]\ny: [*x, *x]\n", "aliases", id="aliases"),
        pytest.param(f"a: {'[' * 100_000}{']' * 100_000}", "nested", id="deeper than the parser can bear"),
        pytest.param(f"a: [{'1,' * 100_000}]", "more than 50000 values", id="wider than anybody can read in a moment"),
    ],
)
def test_a_snapshot_that_is_no_runtime_should_be_refused(text: str, reason: str) -> None:
    with pytest.raises(SnapshotInvalid, match=reason):
        parse_snapshot(text)


@pytest.mark.parametrize(
    "ref",
    [{"runtime": "other"}, {"kind": "TrainingRuntime"}],
    ids=["another name", "another kind"],
)
def test_a_snapshot_of_another_runtime_should_be_refused(ref: dict[str, Any]) -> None:
    with pytest.raises(SnapshotInvalid, match="the TrainJob refers to"):
        check_reference(blueprint(VALUE), trainjob(**ref))
    check_reference(blueprint(VALUE), trainjob())


def test_the_same_runtime_should_have_the_same_digest() -> None:
    assert text_of(blueprint(copy_of(VALUE))) == TEXT
    assert digest_of(TEXT).startswith("sha256:")
    assert len(digest_of(TEXT)) == 71
