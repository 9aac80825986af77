from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ktrainer.api.configuration import ClientConnection, Configuration, Controller, Health, LeaderElection, Plugins
from ktrainer.api.gates import Gate, open_gates
from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.app.manager import NAMESPACE, ProcessPlan, Role, build_manager, build_settings, find_namespace
from ktrainer.client.config.config import ConnectionConfig
from ktrainer.client.throttle import Throttle
from ktrainer.framework.errors import RegistryError
from ktrainer.machinery.election.election import LeaseTimes
from ktrainer.machinery.runnable import Stage
from support.virtualtime import VirtualClock

NOWHERE = ConnectionConfig("http://127.0.0.1:1")
ELECTION = LeaderElection(
    leader_elect=True,
    resource_name="it",
    resource_namespace="there",
    lease_duration=timedelta(seconds=20.5),
    renew_deadline=timedelta(seconds=12),
    retry_period=timedelta(seconds=3),
)


def plan(configuration: Configuration | None = None, role: Role = Role.ALL) -> ProcessPlan:
    return ProcessPlan(configuration or Configuration(), open_gates(), role)


def test_the_namespace_should_be_that_of_the_service_account(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("mine\n")
    assert find_namespace(tmp_path) == "mine"


@pytest.mark.parametrize("text", ["", None])
def test_without_a_service_account_the_namespace_should_be_the_usual_one(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "namespace").write_text(text)
    assert find_namespace(tmp_path) == NAMESPACE


def test_without_an_election_every_manager_should_lead() -> None:
    settings = build_settings(plan())
    assert settings.lease_name == ""


def test_the_times_of_an_election_that_is_off_should_not_be_looked_at() -> None:
    times = LeaderElection(lease_duration=timedelta(seconds=1), renew_deadline=timedelta(seconds=5))
    assert build_settings(plan(Configuration(leader_election=times))).lease_times == LeaseTimes()


def test_the_lease_should_be_as_configured() -> None:
    settings = build_settings(plan(Configuration(leader_election=ELECTION)))
    assert (settings.lease_name, settings.lease_namespace) == ("it", "there")
    times = settings.lease_times
    assert (times.lease_seconds, times.renew_deadline_seconds, times.retry_seconds) == (21, 12, 3)


def test_webhooks_should_not_take_part_in_the_election() -> None:
    settings = build_settings(plan(Configuration(leader_election=ELECTION), Role.WEBHOOK))
    assert settings.lease_name == ""
    assert settings.component == "ktrainer-webhook"


def test_servers_and_limits_should_be_as_configured() -> None:
    health = Health(health_probe_bind_address="0", readiness_endpoint_name="/ready", liveness_endpoint_name="alive")
    settings = build_settings(plan(Configuration(health=health, client_connection=ClientConnection(qps=7, burst=9))))
    assert (settings.health_address, settings.readiness_endpoint, settings.liveness_endpoint) == ("0", "ready", "alive")
    assert (settings.qps, settings.burst) == (7, 9)


@pytest.mark.parametrize("client", [ClientConnection(qps=0, burst=0), ClientConnection(qps=7, burst=0)])
async def test_no_limit_should_keep_requests_from_leaving(
    client: ClientConnection, virtual_clock: VirtualClock
) -> None:
    settings = build_settings(plan(Configuration(client_connection=client)))
    throttle = Throttle(settings.qps, settings.burst, virtual_clock)
    assert [await throttle.wait(TRAINJOBS.group_kind) for _ in range(10)] == [0.0] * 10


async def test_a_plugin_that_does_not_exist_should_be_refused() -> None:
    configuration = Configuration(plugins=Plugins(disabled=["wrong"]))
    with pytest.raises(RegistryError, match="there is no plugin wrong"):
        await build_manager(NOWHERE, plan(configuration))


async def test_a_number_for_a_kind_that_does_not_exist_should_be_warned_of() -> None:
    concurrency = {"TrainJob.trainer.kubeflow.org": 5, "Trainjob.trainer.kubeflow.org": 5}
    with capture_logs() as logs:
        operator = await build_manager(
            NOWHERE, plan(Configuration(controller=Controller(group_kind_concurrency=concurrency)))
        )
    await operator.connection.close()
    assert [(each["field"], each["kind"]) for each in logs] == [
        ("controller.groupKindConcurrency", "Trainjob.trainer.kubeflow.org")
    ]


@pytest.mark.parametrize(
    "role, has_webhooks, has_controllers",
    [(Role.ALL, True, True), (Role.CONTROLLERS, False, True), (Role.WEBHOOK, True, False)],
)
async def test_a_role_should_have_its_parts_and_no_others(
    role: Role, has_webhooks: bool, has_controllers: bool
) -> None:
    operator = await build_manager(NOWHERE, plan(Configuration(leader_election=ELECTION), role))
    try:
        assert ("webhooks" in operator.readyz) is has_webhooks
        assert ("election" in operator.readyz) is has_controllers
        assert "certificates" in operator.readyz
        watched = {informer.view.resource for informer in operator.cache.informers}
        assert TRAINJOBS in watched
        assert (JOBSETS in watched) is has_controllers
    finally:
        await operator.connection.close()


async def test_progress_should_drain_beside_the_webhook_and_not_keep_the_lease() -> None:
    operator = await build_manager(NOWHERE, ProcessPlan(Configuration(), open_gates({Gate.TRAINJOB_STATUS: True})))
    try:
        names = [runnable.name for runnable in operator.manager._runnables[Stage.WEBHOOKS]]
        assert names == ["webhooks", "progress"]
    finally:
        await operator.connection.close()


@pytest.mark.parametrize("is_open", [True, False])
async def test_progress_should_be_served_behind_its_gate(is_open: bool) -> None:
    gates = open_gates({Gate.TRAINJOB_STATUS: is_open})
    operator = await build_manager(NOWHERE, ProcessPlan(Configuration(), gates))
    try:
        names = {metric.name for metric in operator.registry.collect()}
        assert any(name.startswith("ktrainer_progress_") for name in names) is is_open
    finally:
        await operator.connection.close()
