"""The snapshot of a runtime: a ConfigMap that keeps for a TrainJob the runtime that it was made from.

Later passes and updates go by it, so that a change or deletion of the runtime never changes a job that exists. It is
immutable, and its digest is kept in the TrainJob's status: whoever may edit ConfigMaps cannot exchange it unnoticed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import GROUP
from ktrainer.api.resources import API_VERSION, CONFIG_MAPS
from ktrainer.api.yamltext import YamlError, parse_foreign
from ktrainer.framework.component import Component, Write, is_controlled, new_object
from ktrainer.kube.fields import message_of
from ktrainer.runtime.blueprint import KINDS, manifest_of, read_blueprint
from ktrainer.runtime.errors import SnapshotInvalid
from ktrainer.runtime.yamlwriter import to_yaml

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.runtime.blueprint import Blueprint

KEY: Final = "runtime"
MOST_VALUES: Final = 50_000
"""How many keys and values a snapshot may have: far more than any runtime, and few enough to be read within a moment.

Whoever may create ConfigMaps may have written it.
"""


def snapshot_name_of(trainjob: str) -> str:
    """The name of a TrainJob's snapshot."""
    return f"{trainjob}-runtime-snapshot"


def text_of(blueprint: Blueprint) -> str:
    """The content of a snapshot; the same for the same runtime."""
    return to_yaml(manifest_of(blueprint))


def digest_of(text: str) -> str:
    """The digest of a snapshot's content."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def build_snapshot(trainjob: TrainJob, text: str) -> Component:
    """The ConfigMap that holds a snapshot; one that is there is never overwritten."""
    config_map = new_object(CONFIG_MAPS, trainjob, snapshot_name_of(trainjob.metadata.name))
    config_map["immutable"] = True
    config_map["data"] = {KEY: text}
    return Component(CONFIG_MAPS, config_map, Write.CREATE)


def content_of(config_map: JsonObject, trainjob: TrainJob) -> str:
    """The text of a TrainJob's own snapshot, as it was written; raises SnapshotInvalid for any other."""
    if not is_controlled(config_map, trainjob.metadata.uid):
        name = config_map["metadata"]["name"]
        raise SnapshotInvalid(f"the ConfigMap {name} belongs to another object; a new one is written once it is gone")
    text = (config_map.get("data") or {}).get(KEY)
    if text is None:
        raise SnapshotInvalid(f"the ConfigMap {config_map['metadata']['name']} has no key {KEY}")
    written = trainjob.status.runtime_digest
    if written and digest_of(text) != written:
        raise SnapshotInvalid(f"its content is not what was written: {digest_of(text)} instead of {written}")
    return str(text)


def parse_snapshot(text: str) -> Blueprint:
    """The runtime in a snapshot; raises SnapshotInvalid."""
    try:
        # Neither we nor the original write aliases.
        documents = parse_foreign(text, MOST_VALUES)
    except YamlError as error:
        raise SnapshotInvalid(f"it is not YAML: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise SnapshotInvalid("it must be one object")
    manifest = documents[0]
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    if kind not in KINDS or version != API_VERSION:
        raise SnapshotInvalid(f"it is of {kind} in {version}, which is no runtime")
    blueprint = read_blueprint(kind, manifest)
    if isinstance(blueprint, list):
        raise SnapshotInvalid(message_of(blueprint))
    return blueprint


def check_reference(blueprint: Blueprint, trainjob: TrainJob) -> None:
    """Raise SnapshotInvalid unless the snapshot is of the runtime that the TrainJob refers to."""
    ref = trainjob.spec.runtime_ref
    if (blueprint.kind, GROUP, blueprint.name) != (ref.kind, ref.api_group, ref.name):
        raise SnapshotInvalid(
            f"it is of {blueprint.kind}.{GROUP} {blueprint.name}, and the TrainJob refers to "
            f"{ref.kind}.{ref.api_group} {ref.name}"
        )
