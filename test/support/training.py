"""Builders for TrainJobs, runtimes and what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ktrainer.api.decoding import decode
from ktrainer.api.labels import ANCESTOR
from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.framework.dependencies import Dependencies
from ktrainer.framework.info import Info
from ktrainer.runtime.assembly import assemble
from ktrainer.runtime.blueprint import Blueprint, read_blueprint

if TYPE_CHECKING:
    from ktrainer.framework.container import Container
    from ktrainer.framework.findings import Findings
    from ktrainer.framework.plugin import CustomValidationPlugin

API_VERSION = "trainer.kubeflow.org/v1alpha1"
UID = "11111111-2222-3333-4444-555555555555"

J = dict[str, Any]


def container(name: str = "node", **fields: Any) -> J:
    """A container; its image is named after it."""
    return {"name": name, "image": f"img/{name}:1", **fields}


def job(name: str = "node", ancestor: str | None = "trainer", *containers: J, pod: J | None = None, **fields: Any) -> J:
    """A replicated job with one container `node` unless others are given; `pod` is more of its pod spec."""
    template: J = {"spec": {"template": {"spec": {"containers": list(containers) or [container()], **(pod or {})}}}}
    if ancestor:
        template["metadata"] = {"labels": {ANCESTOR: ancestor}}
    return {"name": name, "replicas": 1, "template": template, **fields}


def initializer(name: str, **fields: Any) -> J:
    """A replicated job that initializes, with the mount that it must have."""
    mounts = [{"name": "initializer", "mountPath": "/workspace"}]
    return job(name, name, container(name, volumeMounts=mounts, **fields))


def runtime(
    *jobs: J, kind: str = "ClusterTrainingRuntime", name: str = "rt", template: J | None = None, **spec: Any
) -> J:
    """A runtime with one job unless others are given; `template` is more of the JobSet's spec."""
    jobset = {"replicatedJobs": list(jobs) or [job()], **(template or {})}
    given = {"template": {"spec": jobset}, **spec}
    metadata: J = {"name": name} if kind.startswith("Cluster") else {"name": name, "namespace": "team-a"}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": given}


def trainjob_json(name: str = "demo", *, runtime: str = "rt", kind: str = "ClusterTrainingRuntime", **spec: Any) -> J:
    """A TrainJob as JSON."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": UID},
        "spec": {"runtimeRef": {"name": runtime, "kind": kind}, **spec},
    }


def owned(obj: J) -> J:
    """The same object, controlled by the TrainJob."""
    owner = {"apiVersion": API_VERSION, "kind": "TrainJob", "name": "demo", "uid": UID, "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def trainjob(name: str = "demo", **spec: Any) -> TrainJob:
    """A TrainJob."""
    return as_trainjob(trainjob_json(name, **spec))


def as_trainjob(value: J) -> TrainJob:
    """Decode a TrainJob that is known to be well-formed."""
    decoded = decode(TrainJob, value)
    assert isinstance(decoded, TrainJob), decoded
    return decoded


def blueprint(value: J | None = None) -> Blueprint:
    """Read a runtime that is known to be well-formed."""
    value = value or runtime()
    read = read_blueprint(value["kind"], value)
    assert isinstance(read, Blueprint), read
    return read


def info_of(value: J | None = None, job: TrainJob | None = None) -> Info:
    """The Info of a TrainJob that fits its runtime, before any phase."""
    made = assemble(blueprint(value), job or trainjob(trainer={}))
    assert isinstance(made, Info), made
    return made


def dependencies(*objects: J) -> Dependencies:
    """What a plugin is handed, in a cluster of these objects."""
    reader = DocumentReader([Document("test", 1, each) for each in objects], "team-a")
    return Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)


def findings_of(plugin: CustomValidationPlugin, info: Info, new: TrainJob, old: TrainJob | None = None) -> Findings:
    """What a plugin finds."""
    return run_now(plugin.validate(info, old, new))


def errors_of(findings: Findings) -> list[tuple[str, str]]:
    """The kinds and paths of errors."""
    return [(error.kind.name, str(error.path)) for error in findings.errors]


def env_of(found: Container | None) -> dict[str, Any]:
    """The variables of a container by name, with their value or source, in order."""
    assert found is not None
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in found.spec.get("env", [])}
