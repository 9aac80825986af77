"""TrainJobs and runtimes that no schema would let pass, and the ways by which they come to be all the same."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clusters.api import Refused
from clusters.install import path_of
from clusters.plan import Plan
from clusters.wait import wait_for
from ktrainer.api.resources import API_VERSION, TRAINJOBS

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from clusters.api import Api, Object
    from clusters.folder import Folder

DEEP = "<deep>"
"""Stands for a value that is nested deeper than Python writes it; only `Etcd` knows what to put there."""
HUGE = 10**30

_DEEP_TEXT = '{"a":' * 1000 + '"x"' + "}" * 1000
_ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
_SECONDS = 30.0


def deep(levels: int) -> Any:
    """A value that is nested deep."""
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    2**63,
    HUGE,
    "",
    "é\x00\u2028",
    "x" * 5000,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [{"name": 1}],
    {"a": {"b": ["c", 1]}},
    deep(200),
)
"""What stands where something else should."""


def sound_spec(runtime: str) -> Object:
    """The spec of a TrainJob that has a bit of everything, and is all right."""
    job = {"name": "node", "template": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}}
    return {
        "runtimeRef": {"name": runtime, "kind": "TrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
        "suspend": True,
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "activeDeadlineSeconds": 600,
        "trainer": {
            "image": "img/node:1",
            "command": ["train"],
            "args": ["a"],
            "numNodes": 2,
            "numProcPerNode": 1,
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "resourcesPerNode": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
        },
        "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}],
        "runtimePatches": [
            {"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
        ],
    }


def hopeless_specs() -> list[Any]:
    """Specs that were thought of."""
    ref = {"name": "torch", "kind": "TrainingRuntime"}
    return [
        None,
        "text",
        7,
        [],
        {},
        {"runtimeRef": None},
        {"runtimeRef": "torch"},
        {"runtimeRef": {"name": 1}},
        {"runtimeRef": {**ref, "apiGroup": []}},
        {"runtimeRef": ref, "suspend": "yes"},
        {"runtimeRef": ref, "trainer": {"numNodes": HUGE}},
        {"runtimeRef": ref, "trainer": {"numNodes": -(2**63)}},
        {"runtimeRef": ref, "trainer": {"numNodes": 1.5}},
        {"runtimeRef": ref, "ttlSecondsAfterFinished": HUGE, "activeDeadlineSeconds": HUGE},
        {"runtimeRef": ref, "labels": {"a": deep(300)}},
        {"runtimeRef": ref, "runtimePatches": {"a": "b"}},
        {"runtimeRef": ref, "podTemplateOverrides": [[]]},
        {"runtimeRef": ref, "managedBy": 5},
    ]


def deep_specs() -> list[Any]:
    """Specs that are nested a thousand deep, for `Etcd`."""
    ref = {"name": "torch", "kind": "TrainingRuntime"}
    return [DEEP, {"runtimeRef": ref, "unknown": DEEP}, {"runtimeRef": ref, "trainer": DEEP}]


def fuzzed(spec: Object, chance: random.Random) -> Object:
    """A spec of which up to three parts have become something else."""
    changed: Object = json.loads(json.dumps(spec))
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(list(_places_in(changed)))
        holder[key] = json.loads(json.dumps(chance.choice(JUNK)))
    return changed


def _places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield value, key
        # What was put there before need not be looked through.
        if key != "a":
            yield from _places_in(item)


def trainjob_with(name: str, spec: Any, **metadata: Any) -> Object:
    """A TrainJob with any spec."""
    value = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": name, **metadata}}
    return {**value, "spec": spec}


@contextmanager
def lenient(api: Api, crds: list[Object]) -> Iterator[None]:
    """Let CRDs take anything, and no more at the end."""
    specs = {path_of(crd): api.get(path_of(crd))["spec"] for crd in crds}
    try:
        for path, spec in specs.items():
            # A scale would look into the spec, too.
            versions = [{**each, "schema": _ANYTHING, "subresources": {"status": {}}} for each in spec["versions"]]
            _replace(api, path, {**spec, "versions": versions})
        assert wait_for(lambda: _takes_anything(api), _SECONDS), "the server still looks at schemas"
        yield
    finally:
        for path, spec in specs.items():
            _replace(api, path, spec)
        assert wait_for(lambda: not _takes_anything(api), _SECONDS), "the server does not look at schemas again"


def _replace(api: Api, path: str, spec: Object) -> None:
    api.request("PUT", path, {**api.get(path), "spec": spec})


def _takes_anything(api: Api) -> bool:
    try:
        api.create(f"{TRAINJOBS.path('default')}?dryRun=All", trainjob_with("probe", "text"))
    except Refused:
        return False
    return True


class Etcd:
    """The store below an API server, by its JSON gateway."""

    def __init__(self, cluster: Folder) -> None:
        component = Plan.from_json(cluster.read_plan()).component("etcd")
        assert component is not None
        self._address = urlsplit(component.probe)
        pki = cluster.file("pki", "etcd-ca.crt").parent
        self._tls = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
        self._tls.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")

    def put(self, key: str, value: Object) -> None:
        """Store an object that nobody has looked at."""
        texts = {"key": key, "value": json.dumps(value).replace(f'"{DEEP}"', _DEEP_TEXT)}
        body = json.dumps({name: base64.b64encode(text.encode()).decode() for name, text in texts.items()})
        host, port = str(self._address.hostname), self._address.port
        with closing(http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=self._tls)) as connection:
            connection.request("POST", "/v3/kv/put", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
