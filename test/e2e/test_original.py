"""Beside the original: both leave the same objects on the server, and either takes over what the other has begun.

One cluster begins with the original, goes over to ktrainer, and back again. The tests look at what was written down on
the way, in any order.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest

from clusters.api import Api, Object
from clusters.audit import events_of
from clusters.folder import Folder
from clusters.install import path_of
from support.besidecases import fetch_leftovers, submit
from support.carriedlives import LIVES, Lives, Look
from support.changeover import Changeover
from support.leftovers import Children, differences
from support.manifests import CONFIG, objects_of
from support.rbacproof import forbidden_in
from support.realcluster import new_cluster, new_namespace

FAMILIES = {
    "plain": "none two-jobs",
    "torch": (
        "minimal suspended image-command-args-env env-empty-and-refs sidecar cpu-rounds-up gpu-from-runtime namespaced "
        "resources-merge quantities-odd template-metadata injection-other-job volumeclaims trainer-absent subdomain"
    ),
    "tune": "lora 70b-multinode",
    "mpi": "two-nodes launcher-as-node-two gpus initializers runtime-numnodes",
    "jax": "two",
    "xgboost": "two",
    "xgb": "gpu",
    "flux": "two full",
    "cosched": "two plain-suspended mixed dependson",
    "volcano": "queue topology",
    "init": "both secret-env-order",
    "patch": "everything two-managers launcher-and-node",
}
"""The golden cases that both get, by what their names begin with."""

CASES = [f"{family}-{case}" for family, cases in FAMILIES.items() for case in cases.split()]

LABEL = re.escape("trainer.kubeflow.org/trainjob-name")
ALWAYS = {
    rf"\S+ metadata\.labels\.{LABEL}": "the label by which we watch",
    rf"\S+ applied\[0\]\.f:metadata\.f:labels\.f:{LABEL}": "the same, as a field that we own",
    r"trainjob spec\.runtimePatches\[.\]\.time": "the time at which it came",
    r"configmap-runtime-snapshot immutable": "a snapshot cannot be exchanged",
    r"(secret-\S+|configmap-runtime-snapshot) applied.*": "what is made once is created, and never applied over",
    r"configmap-flux-entrypoint data\.(init|entrypoint)\.sh": "the scripts are our own",
    r"jobset applied.*\.f:(resources|metadata)": "empty maps, which the server has in both cases, are not claimed",
}
"""Where objects may differ in every case, and why."""

NODE = r"template\.spec\.template\.spec\.containers\[0\]"
DEPARTURES = {
    # D1: GPUs are counted by the merged resources.
    "cosched-mixed": [rf"jobset spec\.replicatedJobs\[1\]\.{NODE}\.env\[1\]\.value"],
    # D2: the framework is set up without spec.trainer, too.
    "torch-trainer-absent": [
        rf"jobset spec\.replicatedJobs\[0\]\.{NODE}\.(env|ports).*",
        r"jobset applied.*\.f:(env|ports).*",
    ],
    # D3: numNodes of the runtime sizes the nodes, not the launcher.
    "mpi-runtime-numnodes": [
        r"jobset spec\.replicatedJobs\[.\]\.template\.spec\.(completions|parallelism)",
        r"configmap-mpi-hostfile data\.hostfile",
    ],
    # D4: names of jobs and the subdomain are taken from the template.
    "torch-subdomain": [rf"jobset spec\.replicatedJobs\[0\]\.{NODE}\.env\[3\]\.value"],
    # D6: what is waited for is not in the gang.
    "cosched-dependson": [
        r"coscheduling spec\.minMember",
        r"jobset spec\.replicatedJobs\[0\]\.template\.spec\.template\.metadata\.labels\.scheduling.*",
        r'jobset applied.*k:{"name":"dataset-initializer"}.*\.f:labels.*',
    ],
}
"""Where the objects of one case must differ, by the departures that docs/parity.md tells of."""

OVERWRITTEN = {"running-flux": frozenset({"configmap-flux-entrypoint", "secret-flux-curve"})}
"""The original writes its own scripts and a key that it derives."""
GANG = {"coscheduling"}
"""What ktrainer deletes when a TrainJob has ended."""


@dataclass(frozen=True)
class Passage:
    """The lives before and after the change of the manager, and at their end."""

    before: dict[str, Look]
    after: dict[str, Look]
    end: dict[str, Look]
    overwritten: Mapping[str, frozenset[str]]
    """What the manager writes over, whatever is there."""


@dataclass(frozen=True)
class Upgraded:
    """What there was to see while ktrainer ran."""

    leftovers: dict[str, Children]
    crds: list[Object]
    passage: Passage
    begun: Lives
    """What was begun for the way back."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Folder]:
    with new_cluster("-original", with_original=True) as folder:
        yield folder


@pytest.fixture(scope="module")
def api(folder: Folder) -> Iterator[Api]:
    with closing(Api(folder.kubeconfig("admin"))) as api:
        yield api


@pytest.fixture(scope="module")
def namespaces(api: Api) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(new_namespace(api)) for _ in range(4)]


@pytest.fixture(scope="module")
def changeover(folder: Folder) -> Changeover:
    changeover = Changeover(folder)
    changeover.wait_original()
    return changeover


@pytest.fixture(scope="module")
def theirs(api: Api, namespaces: list[str], changeover: Changeover) -> dict[str, Children]:
    """What the original leaves."""
    submit(api, namespaces[1], CASES)
    return fetch_leftovers(api, namespaces[1], CASES)


@pytest.fixture(scope="module")
def lives(folder: Folder, api: Api, namespaces: list[str], changeover: Changeover) -> Lives:
    """Lives that the original has begun."""
    lives = Lives(api, namespaces[0], folder)
    lives.begin()
    return lives


@pytest.fixture(scope="module")
def upgraded(
    folder: Folder,
    api: Api,
    namespaces: list[str],
    changeover: Changeover,
    lives: Lives,
    theirs: dict[str, Children],
) -> Upgraded:
    before = lives.look()
    changeover.to_ktrainer()
    crds = [api.get(path_of(crd)) for crd in objects_of(CONFIG / "crd")]
    lives.wait_all(lambda item: "state" in item["status"], "ktrainer has seen it")
    begun = Lives(api, namespaces[2], folder)
    begun.begin()
    submit(api, namespaces[3], CASES)
    leftovers = fetch_leftovers(api, namespaces[3], CASES)
    after = lives.look()
    lives.finish()
    return Upgraded(leftovers, crds, Passage(before, after, lives.look(), {}), begun)


@pytest.fixture(scope="module")
def returned(namespaces: list[str], changeover: Changeover, upgraded: Upgraded) -> Passage:
    lives = upgraded.begun
    before = lives.look()
    changeover.to_original()
    changeover.wait_reconciled(namespaces[2], LIVES)
    after = lives.look()
    lives.finish()
    return Passage(before, after, lives.look(), OVERWRITTEN)


@pytest.fixture(params=["to ktrainer", "back"])
def passage(request: pytest.FixtureRequest, upgraded: Upgraded) -> Passage:
    if request.param == "back":
        returned: Passage = request.getfixturevalue("returned")
        return returned
    return upgraded.passage


@pytest.mark.parametrize("case", CASES)
def test_both_should_leave_the_same_but_for_the_departures(
    theirs: dict[str, Children], upgraded: Upgraded, case: str
) -> None:
    assert sorted(theirs[case]) == sorted(upgraded.leftovers[case])
    departures = DEPARTURES.get(case, [])
    found = differences(theirs[case], upgraded.leftovers[case])
    rest = {path: pair for path, pair in found.items() if not any(re.fullmatch(each, path) for each in ALWAYS)}
    assert {path: pair for path, pair in rest.items() if not any(re.fullmatch(each, path) for each in departures)} == {}
    assert [each for each in departures if not any(re.fullmatch(each, path) for path in rest)] == []


@pytest.mark.parametrize("name", LIVES)
def test_a_change_of_the_manager_should_leave_what_it_finds_untouched(passage: Passage, name: str) -> None:
    before, after = passage.before[name], passage.after[name]
    assert before.pods == after.pods
    assert (before.ends, before.trainjob["spec"]) == (after.ends, after.trainjob["spec"])
    assert before.changes(after) <= passage.overwritten.get(name, frozenset())


@pytest.mark.parametrize("name", LIVES)
def test_what_one_has_begun_the_other_should_bring_to_its_end(passage: Passage, name: str) -> None:
    before, end = passage.before[name], passage.end[name]
    assert end.ends == ["Failed" if LIVES[name].state == "Failed" else "Complete"]
    changes = before.changes(end) - passage.overwritten.get(name, frozenset())
    if LIVES[name].state == "Suspended":
        # Resumed, and then ended.
        assert changes - GANG == {"jobset"}
    else:
        assert changes <= GANG
        assert end.pods == before.pods


def test_the_schemas_should_be_ours_alone(upgraded: Upgraded) -> None:
    for served, shipped in zip(upgraded.crds, objects_of(CONFIG / "crd"), strict=True):
        assert served["spec"]["versions"] == shipped["spec"]["versions"]


def test_nothing_should_have_been_forbidden(folder: Folder, returned: Passage) -> None:
    assert forbidden_in(events_of(folder.file("audit", "audit.log"))) == []
