"""The admission webhook while its answers are slow, while it is dead, and while its replicas are replaced."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from support.admissions import admitting
from support.copies import eventually
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Delay
from support.figures import Figures, scaled
from support.managers import Manager, ManagerSettings, Ports, installed_webhooks
from support.servicefront import ServiceFront
from support.trail import Trail, Write
from support.training import runtime, trainjob_json

SLOW = "/trainingruntimes/slow-"
SLOW_CALLS = 50
SLOW_SECONDS = 12.0
TIMEOUT_SECONDS = 10.0
"""How long API servers wait for the webhook."""
CALLS_PER_SECOND = 50.0
CALM_SECONDS = 4.0

pytestmark = pytest.mark.usefixtures("crds")


class Team:
    """A namespace with a runtime."""

    def __init__(self, api: Api, namespace: str) -> None:
        group = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}"
        self.trainjobs = f"{group}/trainjobs"
        self.jobsets = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"
        given = runtime(kind="TrainingRuntime", mlPolicy={"numNodes": 2, "torch": {}})
        api.create(f"{group}/trainingruntimes", {**given, "metadata": {"name": "rt"}})


@pytest.fixture
def team(admin: Api, namespace: str) -> Team:
    """Made before the webhook is there."""
    return Team(admin, namespace)


def trainjob(name: str = "demo", runtime: str = "rt") -> Object:
    value = trainjob_json(name, runtime=runtime, kind="TrainingRuntime")
    return {**value, "metadata": {"name": name}}


@contextmanager
def started(*managers: Manager) -> Iterator[None]:
    """Start managers, wait until they are ready, and leave none behind."""
    try:
        for manager in managers:
            manager.start()
        for manager in managers:
            manager.wait_ready()
        yield
    finally:
        for manager in managers:
            manager.crash()


@pytest.fixture
def distant_webhook(proxy: FaultProxy, admin: Api, team: Team, tmp_path: Path) -> Iterator[Manager]:
    """A webhook that reaches the API server through the proxy only."""
    webhook = Manager(ManagerSettings(proxy.kubeconfig, command="webhook", folder=tmp_path), tmp_path, "webhook")
    with installed_webhooks(admin, webhook.ports), started(webhook):
        yield webhook


async def test_T22_slow_admissions_should_not_hold_up_others(
    cluster: Folder, proxy: FaultProxy, team: Team, distant_webhook: Manager, figures: Figures
) -> None:
    kubeconfig, loop = cluster.kubeconfig("admin"), asyncio.get_running_loop()
    # Whether a runtime that no cache has exists is asked live, and that takes its time now.
    delay = Delay(lambda request: SLOW in request.path, seconds=SLOW_SECONDS)
    proxy.rules = [delay]

    def refuse(number: int) -> float:
        return refused_after(kubeconfig, team.trainjobs, trainjob(f"slow-{number}", f"slow-{number}"))

    async with admitting(kubeconfig, team.trainjobs, trainjob(), CALLS_PER_SECOND) as others:
        await asyncio.sleep(CALM_SECONDS)
        before = others.take()
        with ThreadPoolExecutor(SLOW_CALLS) as threads:
            calls = [loop.run_in_executor(threads, refuse, number) for number in range(SLOW_CALLS)]
            await eventually(lambda: in_flight(distant_webhook) >= SLOW_CALLS, 30, "all slow ones are waiting")
            others.take()
            await asyncio.sleep(CALM_SECONDS)
            meanwhile = others.take()
            slowest = max(await asyncio.gather(*calls))
    figures.at_most("slowest admission, which is refused", slowest, TIMEOUT_SECONDS + 2, "s")
    figures.exactly("others that failed", len(others.failures), 0)
    added = percentile(meanwhile, 0.99) - percentile(before, 0.99)
    figures.at_most("99 of 100 others, more than without slow ones", added * 1000, 150, "ms")
    await eventually(lambda: in_flight(distant_webhook) == 0, 30, "nothing is left of the slow ones")
    await eventually(lambda: answered(proxy) == delay.struck, 30, "nothing is left of them in the proxy, either")


def answered(proxy: FaultProxy) -> int:
    """How many of the slow requests the proxy is done with."""
    return sum(SLOW in each.request.path for each in proxy.seen)


def in_flight(manager: Manager) -> float:
    """How many admissions a manager is answering."""
    _, text = manager.scrape()
    lines = [line for line in text.splitlines() if line.startswith("controller_runtime_webhook_requests_in_flight{")]
    return sum(float(line.split()[-1]) for line in lines)


def refused_after(kubeconfig: Path, path: str, value: Object) -> float:
    """How long an API server takes to refuse an object, over a connection of its own."""
    began = time.monotonic()
    with closing(Api(kubeconfig)) as api, pytest.raises(Refused, match=r"in time|deadline exceeded"):
        api.create(path, value)
    return time.monotonic() - began


def percentile(seconds: list[float], share: float) -> float:
    """How long the given share of them took at most."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@pytest.fixture
def webhook(cluster: Folder, admin: Api, team: Team, tmp_path: Path) -> Iterator[Manager]:
    """A webhook that runs alone, beside a manager that has none."""
    kubeconfig = cluster.kubeconfig("admin")
    webhook = Manager(ManagerSettings(kubeconfig, command="webhook", folder=tmp_path), tmp_path, "webhook")
    manager = Manager(ManagerSettings(kubeconfig, flags=("--no-webhook",), folder=tmp_path), tmp_path)
    with installed_webhooks(admin, webhook.ports), started(webhook, manager):
        manager.wait_leading()
        yield webhook


async def test_T23_a_dead_webhook_should_stop_nothing_but_admissions(
    cluster: Folder, admin: Api, namespace: str, team: Team, webhook: Manager, figures: Figures
) -> None:
    trail = Trail(cluster, namespace)
    names = [f"demo-{number}" for number in range(scaled(5, 20))]
    for name in names:
        await asyncio.to_thread(admin.create, team.trainjobs, trainjob(name))
    await eventually(lambda: len(admin.get(team.jobsets)["items"]) == len(names), 60, "all JobSets are built")
    webhook.crash()
    died_at, slowest = time.time(), 0.0
    for name in names:
        began = time.monotonic()
        with pytest.raises(Refused, match="failed calling webhook"):
            await asyncio.to_thread(admin.create, team.trainjobs, trainjob(f"new-{name}"))
        slowest = max(slowest, time.monotonic() - began)
        # The controller builds it again, and nobody may be asked about that.
        await asyncio.to_thread(admin.delete, f"{team.jobsets}/{name}")
    figures.at_most("refusal while the webhook is dead", slowest, 1, "s")
    for resource in ("jobsets", "trainjobs"):
        await eventually(
            lambda: len(written(trail, resource, died_at)) >= len(names),  # noqa: B023
            60,
            f"{resource} are written meanwhile",
        )
    await asyncio.sleep(scaled(2, 30))
    for resource in ("jobsets", "trainjobs"):
        writes = await asyncio.to_thread(written, trail, resource, died_at)
        figures.exactly(f"writes of {resource} that failed", sum(not each.is_success for each in writes), 0)
    webhook.start()
    await eventually(lambda: is_accepted(admin, team.trainjobs), 30, "admissions are answered")
    figures.at_most("recovery after the start", time.time() - webhook.loaded_at, 5, "s")


def written(trail: Trail, resource: str, since: float) -> list[Write]:
    """What the controllers have written since then, whether it was stored or not."""
    return [each for each in trail.writes(resource, "ktrainer-manager") if each.received_at >= since]


def is_accepted(api: Api, path: str) -> bool:
    """Whether a TrainJob would be taken now."""
    try:
        api.create(f"{path}?dryRun=All", trainjob())
    except Refused:
        return False
    return True


@pytest.fixture
def managers(cluster: Folder, admin: Api, team: Team, tmp_path: Path) -> Iterator[list[Manager]]:
    """Two replicas behind a Service."""
    elected = {"leaderElection": {"leaderElect": True}}
    settings = ManagerSettings(cluster.kubeconfig("admin"), configuration=elected, folder=tmp_path)
    managers = [Manager(replace(settings, ports=Ports.free()), tmp_path, f"manager-{number}") for number in range(2)]
    front = ServiceFront(managers)
    service = replace(managers[0].ports, webhook=front.port)
    with front, installed_webhooks(admin, service), started(*managers):
        front.wait_for_all()
        yield managers


async def test_T24_replicas_that_are_replaced_should_lose_no_admission(
    cluster: Folder, team: Team, managers: list[Manager], figures: Figures
) -> None:
    wanted = scaled(1_000, 5_000)
    async with admitting(cluster.kubeconfig("admin"), team.trainjobs, trainjob(), CALLS_PER_SECOND) as admissions:
        while len(admissions.seconds) < wanted:
            for manager in managers:
                await asyncio.sleep(2)
                manager.terminate()
                code, _ = await manager.exit_code(60)
                assert code == 0, manager.tail()
                await asyncio.to_thread(manager.start)
                await asyncio.to_thread(manager.wait_ready)
    assert admissions.failures == []
    figures.at_least("admissions while replicas were replaced", len(admissions.seconds), wanted)
    figures.exactly("admissions that were lost", len(admissions.failures), 0)
