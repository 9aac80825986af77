"""Objects that should not exist: past a schema that takes anything, and straight into the store."""

import random
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.api import Api, Object
from clusters.folder import Folder
from clusters.wait import wait_for
from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, TRAINING_RUNTIMES, TRAINJOBS
from support.figures import Figures
from support.kubectl import Kubectl
from support.malformed import Etcd, deep_specs, fuzzed, hopeless_specs, lenient, sound_spec, trainjob_with
from support.managers import Manager, running_manager
from support.trail import Trail
from support.workplace import Workplace, states_of, torch_runtime

CASES = 200
CASES_PER_SECOND = 20.0
ROUNDS = 3
"""How often those beside sound TrainJobs and those beside malformed ones take turns: a machine has slow moments."""
OTHERS = 50
"""How many in each round."""
OTHERS_PER_SECOND = 20.0
SEED = 28
TOLD_SECONDS = 60.0

# Else the rate limit would be what others wait for, whatever there is beside them.
UNLIMITED = {"clientConnection": {"qps": 500, "burst": 500}}


@pytest.fixture
def lenient_crds(admin: Api, crds: list[Object]) -> Iterator[None]:
    with lenient(admin, crds):
        yield


@pytest.fixture
def manager(cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path) -> Iterator[Manager]:
    """Without admission, which would let none of this pass."""
    with running_manager(cluster, admin, tmp_path, hooked=False, configuration=UNLIMITED) as manager:
        yield manager


def malformed_trainjobs() -> list[Object]:
    """All that was thought of, and some that were not."""
    chance, sound = random.Random(SEED), sound_spec("torch")
    specs = [*hopeless_specs(), *(fuzzed(sound, chance) for _ in range(CASES))]
    return [trainjob_with(f"bad-{number}", spec) for number, spec in enumerate(specs)]


@pytest.mark.usefixtures("lenient_crds")
def test_T28_malformed_objects_should_fail_alone_and_be_told_why(
    cluster: Folder, admin: Api, workplace: Workplace, manager: Manager, figures: Figures
) -> None:
    trail, kubeconfig = Trail(cluster, workplace.namespace), cluster.kubeconfig("admin")
    bad = [*malformed_trainjobs(), *others_malformed(workplace)]
    # What as many sound ones cost the others is not to be counted against the malformed ones.
    sound = [trainjob_with(f"sound-{number}", sound_spec("torch")) for number in range(len(bad))]
    for number in range(ROUNDS):
        with creating(kubeconfig, workplace.path(TRAINJOBS), sound[number::ROUNDS]):
            add_others(workplace, f"before-{number}")
        with creating(kubeconfig, workplace.path(TRAINJOBS), bad[number::ROUNDS]):
            add_others(workplace, f"meanwhile-{number}")
    assert wait_for(lambda: count(workplace, "sound") == len(sound), 60, interval=0.5), "JobSets are missing"
    make_cycle(workplace)
    names = [each["metadata"]["name"] for each in bad]
    wait_for(lambda: not untold(workplace, names), TOLD_SECONDS, interval=0.5)
    silent = untold(workplace, names)
    clear(workplace)
    before, meanwhile = (slowest_of(trail, prefix) for prefix in ("before", "meanwhile"))
    figures.at_least("malformed TrainJobs, runtimes and snapshots", len(bad), CASES)
    figures.exactly("TrainJobs that were not told why", len(silent), 0)
    figures.exactly("ends of the manager", int(not manager.is_running) + len(manager.agents) - 1, 0)
    figures.exactly("turns that failed unexpectedly", unexpected(manager), 0)
    figures.at_most("99 of 100 others, times as long as beside sound ones", meanwhile / before, 2)


def clear(workplace: Workplace) -> None:
    """Delete what cannot be written any more once the schemas are back, runtimes that are in use before all."""
    for resource in (TRAINJOBS, TRAINING_RUNTIMES):
        workplace.admin.delete(workplace.path(resource))
    assert wait_for(lambda: not workplace.admin.get(workplace.path(TRAINING_RUNTIMES))["items"], 60), "runtimes stay"


def add_others(workplace: Workplace, prefix: str) -> None:
    """Create sound TrainJobs at a steady pace, and wait for their JobSets."""
    for number in range(OTHERS):
        workplace.submit(f"{prefix}-{number}", suspend=True)
        wait_for(lambda: False, 1 / OTHERS_PER_SECOND)
    assert wait_for(lambda: count(workplace, prefix) == OTHERS, 30, interval=0.5), f"JobSets are missing: {prefix}"


def count(workplace: Workplace, prefix: str) -> int:
    jobsets = workplace.admin.get(workplace.path(JOBSETS))["items"]
    return sum(each["metadata"]["name"].startswith(prefix) for each in jobsets)


@contextmanager
def creating(kubeconfig: Path, path: str, values: list[Object]) -> Iterator[None]:
    """Create objects at a steady pace in a thread, until all are there."""
    ended = threading.Event()

    def create() -> None:
        with closing(Api(kubeconfig)) as api:
            for value in values:
                api.create(path, value)
                ended.wait(1 / CASES_PER_SECOND)

    with ThreadPoolExecutor(1) as pool:
        created = pool.submit(create)
        yield
        created.result()


def others_malformed(workplace: Workplace) -> list[Object]:
    """TrainJobs that are sound, of runtimes and with snapshots that are not."""
    chance, sound = random.Random(SEED), torch_runtime()["spec"]
    found = []
    for number in range(20):
        name = f"runtime-{number}"
        workplace.add_runtime({**torch_runtime(name), "spec": fuzzed(sound, chance) if number else None})
        found.append(trainjob_with(name, sound_spec(name)))
    for number, data in enumerate(({}, {"runtime": ""}, {"runtime": "[" * 2000}, {"runtime": "&a [*a]"})):
        name = f"snapshot-{number}"
        metadata = {"name": f"{name}-runtime-snapshot", "labels": {"trainer.kubeflow.org/trainjob-name": name}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        workplace.admin.create(workplace.path(CONFIG_MAPS), body)
        found.append(trainjob_with(name, sound_spec("torch")))
    return found


def make_cycle(workplace: Workplace) -> None:
    """Let two TrainJobs own each other, one itself, and one a TrainJob that never was."""
    names = ["cycle-0", "cycle-1", "cycle-2", "cycle-3"]
    uids = [workplace.submit(name, suspend=True)["metadata"]["uid"] for name in names]
    owners = [(names[1], uids[1]), (names[0], uids[0]), (names[2], uids[2])]
    for name, (owner, uid) in zip(names, owners, strict=False):
        reference = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": owner, "uid": uid}
        change = {"metadata": {"ownerReferences": [{**reference, "controller": True}]}}
        workplace.admin.merge(workplace.path(TRAINJOBS, name), change)
    assert wait_for(lambda: count(workplace, "cycle") == len(names), 30), "they are not built"


def unexpected(manager: Manager) -> int:
    """How many turns have ended in an error that nobody thought of."""
    return len(manager.logged("reconcile failed unexpectedly"))


def untold(workplace: Workplace, names: list[str]) -> list[str]:
    """The TrainJobs that nobody has said anything about."""
    jobs = {job["metadata"]["name"]: job for job in workplace.admin.get(workplace.path(TRAINJOBS))["items"]}
    return [name for name in names if not states_of(jobs[name]) and not jobs[name].get("status", {}).get("state")]


def slowest_of(trail: Trail, prefix: str) -> float:
    """How long 99 of 100 TrainJobs have waited for their JobSets."""
    asked = {each.name: each.answered_at for each in trail.writes("trainjobs") if each.is_creation}
    made = {each.name: each.answered_at for each in trail.writes("jobsets") if each.is_creation}
    seconds = sorted(made[name] - asked[name] for name in made if name.startswith(prefix))
    return seconds[int(len(seconds) * 0.99)]


@pytest.mark.usefixtures("lenient_crds")
def test_T28_trainjobs_nested_a_thousand_deep_should_be_told_so(
    cluster: Folder, namespace: str, manager: Manager, figures: Figures
) -> None:
    etcd, kubectl = Etcd(cluster), Kubectl(cluster.kubeconfig("admin"))
    names = [f"deep-{number}" for number in range(len(deep_specs()))]
    for name, spec in zip(names, deep_specs(), strict=True):
        put(etcd, namespace, name, spec)

    def told() -> list[str]:
        # No decoder of Python could read them back.
        query = "jsonpath={.status.conditions[?(@.type=='ResourcesReady')].message}"
        return [kubectl.run("get", "trainjob", f"--namespace={namespace}", name, "-o", query).output for name in names]

    assert wait_for(lambda: all("nested too deeply" in text for text in told()), TOLD_SECONDS, interval=1), told()
    figures.exactly("ends of the manager", int(not manager.is_running), 0)
    figures.exactly("turns that failed unexpectedly", unexpected(manager), 0)


def test_T28_what_was_put_straight_into_the_store_should_disturb_nobody(
    cluster: Folder, admin: Api, workplace: Workplace, manager: Manager, figures: Figures
) -> None:
    etcd, namespace = Etcd(cluster), workplace.namespace
    specs = [*hopeless_specs(), *deep_specs()]
    for number, spec in enumerate(specs):
        put(etcd, namespace, f"bad-{number}", spec)
    put(etcd, namespace, "bad-status", sound_spec("torch"), status={"conditions": "x", "jobsStatus": 7})
    put(etcd, namespace, "bad-label", sound_spec("torch"), labels={"a": 1})
    workplace.submit("after", suspend=True)
    workplace.until_jobset("after")
    # A server that is started anew has to list them, too.
    manager.crash()
    manager.start()
    manager.wait_ready()
    workplace.submit("anew", suspend=True)
    workplace.until_jobset("anew")
    figures.at_least("objects put straight into the store", len(specs) + 2, 20)
    figures.exactly("ends of the manager", int(not manager.is_running), 0)
    figures.exactly("turns that failed unexpectedly", unexpected(manager), 0)


def put(etcd: Etcd, namespace: str, name: str, spec: Any, status: Any = None, **metadata: Any) -> None:
    given = {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
    value = trainjob_with(name, spec, **given, **metadata)
    kind = f"{TRAINJOBS.group}/{TRAINJOBS.plural}"
    etcd.put(f"/registry/{kind}/{namespace}/{name}", value if status is None else {**value, "status": status})
