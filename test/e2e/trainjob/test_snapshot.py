"""The snapshot of a runtime: whose it must be and what it must hold, on a real control plane without admission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from clusters.wait import wait_for
from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import CONFIG_MAPS, TRAINING_RUNTIMES
from support.workplace import Workplace, message_of, torch_runtime

if TYPE_CHECKING:
    from clusters.api import Object
    from support.managers import Manager

pytestmark = pytest.mark.usefixtures("unhooked")

NAME = "train-runtime-snapshot"


def snapshot_of(trainjob: Object, text: str | None, *, owned: bool = True) -> Object:
    """A ConfigMap in the place of the snapshot of a TrainJob."""
    metadata: Object = {"name": NAME, "labels": {TRAINJOB_NAME: "train"}}
    if owned:
        owner = {"name": "train", "uid": trainjob["metadata"]["uid"], "controller": True}
        metadata["ownerReferences"] = [{"apiVersion": trainjob["apiVersion"], "kind": "TrainJob", **owner}]
    data = {} if text is None else {"runtime": text}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def text_of(**fields: Any) -> str:
    """The text of a snapshot of the runtime that the TrainJob refers to, with some fields changed."""
    return yaml.safe_dump({**torch_runtime("absent"), **fields})


def edit(workplace: Workplace) -> None:
    """Change the runtime in a way that TrainJobs would show."""
    edited = torch_runtime()
    edited["spec"]["mlPolicy"]["numNodes"] = 5
    workplace.admin.apply(workplace.path(TRAINING_RUNTIMES, "torch"), edited)


@pytest.mark.parametrize(
    "owned, text, complaint",
    [
        pytest.param(False, text_of(), f"the ConfigMap {NAME} belongs to another object", id="another's"),
        pytest.param(True, None, f"the ConfigMap {NAME} has no key runtime", id="without the key"),
        pytest.param(True, "a: [", "it is not YAML", id="unparsable"),
        pytest.param(True, text_of(kind="ClusterTrainingRuntime"), "the TrainJob refers to", id="of another kind"),
        pytest.param(True, text_of(apiVersion="acme.io/v1"), "which is no runtime", id="of another group"),
        pytest.param(True, text_of(metadata={"name": "other"}), "the TrainJob refers to", id="of another name"),
    ],
)
def test_a_snapshot_that_cannot_be_ours_should_be_told_and_never_overwritten(
    workplace: Workplace, owned: bool, text: str | None, complaint: str
) -> None:
    trainjob = workplace.submit(runtime="absent")
    workplace.until_reason("ResourcesReady", "False RuntimeNotFound")
    made = workplace.admin.create(workplace.path(CONFIG_MAPS), snapshot_of(trainjob, text, owned=owned))
    workplace.add_runtime(torch_runtime("absent"))
    refused = workplace.until_reason("ResourcesReady", "False RuntimeSnapshotInvalid")
    message = message_of(refused, "ResourcesReady")
    assert message.startswith("invalid runtime snapshot: ")
    assert complaint in message
    assert workplace.admin.get(workplace.path(CONFIG_MAPS, NAME)) == made


def test_a_snapshot_without_a_label_should_be_found_and_go_unchanged(workplace: Workplace) -> None:
    trainjob = workplace.submit(runtime="absent")
    workplace.until_reason("ResourcesReady", "False RuntimeNotFound")
    # The original stores the whole object, and labels nothing.
    metadata = {"name": "absent", "namespace": workplace.namespace, "uid": "11111111-2222-3333-4444-555555555555"}
    made = snapshot_of(trainjob, text_of(metadata=metadata, status={}))
    del made["metadata"]["labels"]
    stored = workplace.admin.create(workplace.path(CONFIG_MAPS), made)
    workplace.change(suspend=True)
    workplace.until_reason("ResourcesReady", "True Applied")
    assert workplace.admin.get(workplace.path(CONFIG_MAPS, NAME)) == stored


def test_another_content_under_the_name_of_a_snapshot_should_be_told(workplace: Workplace, unhooked: Manager) -> None:
    trainjob = workplace.submit(suspend=True)
    digest = workplace.until_state("Suspended")["status"]["runtimeDigest"]
    path = workplace.path(CONFIG_MAPS, NAME)
    snapshot = workplace.admin.get(path)
    assert snapshot["immutable"] is True
    text = snapshot["data"]["runtime"].replace("pytorch/pytorch", "registry.example/evil")
    # Whoever exchanges it must be quick: the manager writes it again.
    unhooked.freeze()
    workplace.admin.delete(path)
    workplace.admin.create(workplace.path(CONFIG_MAPS), snapshot_of(trainjob, text))
    unhooked.thaw()
    refused = workplace.until_reason("ResourcesReady", "False RuntimeSnapshotInvalid")
    assert "its content is not what was written" in message_of(refused, "ResourcesReady")
    workplace.change(suspend=False)
    workplace.until(lambda job: job["status"]["state"] == "Pending", "it is resumed, and does not start")
    assert refused["status"]["runtimeDigest"] == digest
    assert workplace.jobset()["spec"]["suspend"] is True


def test_a_snapshot_that_is_lost_should_be_written_again(workplace: Workplace) -> None:
    workplace.submit(suspend=True)
    before = workplace.until_state("Suspended")["status"]["runtimeDigest"]
    uid = lose(workplace)
    assert workplace.trainjob()["status"]["runtimeDigest"] == before
    edit(workplace)
    assert workplace.trainjob()["status"]["runtimeDigest"] == before
    assert not workplace.events("RuntimeSnapshotLost")
    assert lose(workplace) != uid
    workplace.until(lambda job: job["status"]["runtimeDigest"] != before, "the digest is that of the new one")
    assert wait_for(lambda: bool(workplace.events("RuntimeSnapshotLost")), 20)
    event = workplace.events("RuntimeSnapshotLost")[0]
    assert (event["type"], event["reportingController"]) == ("Warning", "trainer-trainjob-controller")
    workplace.change(suspend=False)
    workplace.until_state("Running")


def lose(workplace: Workplace) -> str:
    """Delete the snapshot, wait until there is another, and return its uid."""
    path = workplace.path(CONFIG_MAPS, NAME)
    former = workplace.admin.get(path)["metadata"]["uid"]
    workplace.admin.delete(path)
    made = workplace.waiter.until(path, lambda found: found["metadata"]["uid"] != former, "it is written again")
    return str(made["metadata"]["uid"])
