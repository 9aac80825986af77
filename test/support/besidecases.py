"""The TrainJobs that the original and ktrainer both get, taken from the golden cases, all of them in one namespace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.api import Refused
from clusters.stages import RUNS_FOR
from clusters.wait import wait_for
from support.leftovers import children_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clusters.api import Api, Object
    from support.leftovers import Children

_GOLDEN = Path(__file__).parents[1] / "unit" / "golden"
_GROUP = "/apis/trainer.kubeflow.org/v1alpha1"
_SECONDS = 60.0


def submit(api: Api, namespace: str, cases: Iterable[str]) -> None:
    """Create the TrainJobs of cases, each of its case's name, and their runtimes where they are missing."""
    items = [item for case in cases for item in _documents(case)]
    # The original looks for runtimes in a cache, so all of them come first.
    for item in sorted(items, key=lambda item: item["kind"] == "TrainJob"):
        if item["kind"] == "ClusterTrainingRuntime":
            path = f"{_GROUP}/clustertrainingruntimes"
        else:
            path = f"{_GROUP}/namespaces/{namespace}/{item['kind'].lower()}s"
        create(api, path, item)


def fetch_leftovers(api: Api, namespace: str, cases: Iterable[str]) -> dict[str, Children]:
    """What there is for the TrainJobs of cases, once all of it is there."""
    wanted = {case: len(_read(case)["expect"]["objects"]) + 1 for case in cases}
    found: dict[str, Children] = {}

    def is_complete() -> bool:
        found.update(children_in(api, namespace))
        return all(len(found.get(case, ())) >= count for case, count in wanted.items())

    is_there = wait_for(is_complete, _SECONDS, 0.5)
    assert is_there, {case: sorted(found.get(case, ())) for case, count in wanted.items() if len(found[case]) < count}
    for trainjob in api.get(f"{_GROUP}/namespaces/{namespace}/trainjobs")["items"]:
        found[trainjob["metadata"]["name"]]["trainjob"] = trainjob
    return found


def lasting(runtime: Object) -> Object:
    """The runtime with pods that the fake nodes run until somebody ends them."""
    copy: Object = json.loads(json.dumps(runtime))
    for job in copy["spec"]["template"]["spec"]["replicatedJobs"]:
        metadata = job["template"]["spec"]["template"].setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), RUNS_FOR: "1h"}
    return copy


def create(api: Api, path: str, item: Object) -> None:
    """Create an object that may be there already; a TrainJob as soon as the original knows its runtime."""
    assert wait_for(lambda: _is_created(api, path, item), _SECONDS)


def _is_created(api: Api, path: str, item: Object) -> bool:
    try:
        api.create(path, item)
    except Refused as refusal:
        if "must be created before" in str(refusal):
            return False
        if refusal.code != 409:
            raise
    return True


def _documents(case: str) -> Iterator[Object]:
    """The documents of a case, with names of their own; the end of a runtime's name can have a meaning."""
    prefix = case.replace("-", "")
    for document in _read(case)["input"]:
        metadata = {key: value for key, value in document["metadata"].items() if key not in {"uid", "namespace"}}
        if document["kind"] == "TrainJob":
            reference = document["spec"]["runtimeRef"]
            reference["name"] = prefix + reference["name"]
            yield {**document, "metadata": {**metadata, "name": case}}
        else:
            # What has ended is not compared: PodGroups go with the end of a TrainJob.
            yield lasting({**document, "metadata": {**metadata, "name": prefix + metadata["name"]}})


def _read(case: str) -> Object:
    value: Object = json.loads((_GOLDEN / f"{case}.json").read_text())
    return value
