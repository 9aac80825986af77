"""The show itself: a cluster, ktrainer in it, the examples, and their life until all have ended."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clusters import lifecycle
from clusters.api import Api, Refused
from clusters.plan import Options
from clusters.wait import wait_for
from controlplane.problem import Problem
from demo.jobs import ENDS, Row, read_examples, row_of
from deployment.deployment import Deployment
from deployment.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.folder import Folder
    from controlplane.build import Assets
    from demo.screen import Screen

Object = dict[str, Any]

TRAINJOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
NODES = 4
PATIENCE_SECONDS = 180.0
"""How long nothing may change before the show is given up."""

_PAUSE_SECONDS = 0.25
_ADMITTED_SECONDS = 30.0


def prepare(folder: Folder, assets: Assets, say: Callable[[str], None]) -> Deployment:
    """Bring up a cluster with ktrainer in it, ready for TrainJobs."""
    lifecycle.up(folder, assets, Options(nodes=NODES), say)
    deployment = Deployment(folder, Kubectl(assets.programs["kubectl"], folder.kubeconfig("admin")))
    say("kubectl apply --server-side -k config/default")
    deployment.install()
    say("starting ktrainer manager")
    deployment.start()
    deployment.wait_ready()
    say("kubectl apply --server-side -k config/runtimes")
    deployment.install_runtimes()
    say("waiting until the API server knows the new kinds everywhere")
    deployment.wait_known()
    return deployment


def submit(api: Api, say: Callable[[str], None]) -> int:
    """Create the examples, and the volumes that some of them ask for; return how many there are."""
    examples = read_examples()
    for number in range(len(examples)):
        api.apply(f"/api/v1/persistentvolumes/demo-{number}", _volume(f"demo-{number}"))
    for example in examples:
        say(f"kubectl create -f examples/trainjobs/{example['spec']['runtimeRef']['name']}.yaml")
        _create(api, example)
    return len(examples)


def watch(api: Api, deployment: Deployment, count: int, screen: Screen) -> list[Row]:
    """Show the TrainJobs until all have ended; raise Problem where nothing changes for a long time."""
    pause = threading.Event()
    known: list[tuple[str, str, str]] = []
    changed = time.monotonic()
    while True:
        items = api.get(TRAINJOBS)["items"]
        now = datetime.now(UTC)
        rows = [row_of(item, now) for item in items]
        screen.show(rows)
        if len(rows) == count and all(row.state in ENDS for row in rows):
            return rows
        seen = [(row.name, row.state, row.pods) for row in rows]
        if seen != known:
            known, changed = seen, time.monotonic()
        if time.monotonic() - changed > PATIENCE_SECONDS:
            raise Problem(f"nothing has changed for {PATIENCE_SECONDS:g} s.\n{deployment.last_words()}")
        pause.wait(_PAUSE_SECONDS)


def play(deployment: Deployment, screen: Screen, say: Callable[[str], None]) -> list[Row]:
    """Submit the examples and show their life to its end."""
    with closing(Api(deployment.folder.kubeconfig("admin"))) as api:
        count = submit(api, say)
        return watch(api, deployment, count, screen)


def _create(api: Api, example: Object) -> None:
    """Create a TrainJob; the API server may need a moment to hear of the webhook's certificate."""
    refusals: list[Refused] = []

    def is_created() -> bool:
        try:
            api.create(TRAINJOBS, example)
        except Refused as refusal:
            if refusal.code < 500:
                raise Problem(f"the TrainJob {example['metadata']['name']} was refused: {refusal}") from refusal
            refusals.append(refusal)
            return False
        return True

    if not wait_for(is_created, _ADMITTED_SECONDS, 0.5):
        raise Problem(f"the TrainJob {example['metadata']['name']} cannot be created: {refusals[-1]}")


def _volume(name: str) -> Object:
    """A volume that exists on paper only, as the nodes do."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/nowhere"},
        },
    }
