"""The manager put together from its configuration: what runs, and what it runs with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import ceil
from typing import TYPE_CHECKING, Final

import structlog

from ktrainer.api.gates import Gate
from ktrainer.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBSETS,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VOLCANO_POD_GROUPS,
)
from ktrainer.app.admission import add_admission
from ktrainer.app.certificates import add_serving_certificate
from ktrainer.app.clusterview import ClusterView
from ktrainer.app.controllers import add_controllers
from ktrainer.app.keys import make_curve_keys, make_ssh_keys
from ktrainer.app.probes import decide_endpoints
from ktrainer.app.process import keep_settled
from ktrainer.app.progress import add_progress_server
from ktrainer.app.protection import add_protection
from ktrainer.app.training import build_training
from ktrainer.client.config.config import SERVICE_ACCOUNT
from ktrainer.controllers.pluginmetrics import PluginMetrics
from ktrainer.framework.dependencies import Dependencies
from ktrainer.framework.registry import Selection
from ktrainer.kube.access import Access
from ktrainer.machinery.election.election import LeaseTimes
from ktrainer.machinery.election.lease import LEASES
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.runnable import Runnable, Stage

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from ktrainer.aio.signals import Terminator
    from ktrainer.api.configuration import Configuration, Controller, LeaderElection
    from ktrainer.client.config.config import ConnectionConfig
    from ktrainer.framework.observer import Observer
    from ktrainer.runtime.registry import Runtimes

_log = structlog.get_logger(__name__)

NAMESPACE: Final = "kubeflow-system"
"""The manager's namespace where nothing else tells it."""


ACCESS: Final = (
    Access(LEASES, ("create",), is_own=True),
    Access(LEASES, ("get", "update"), names=("trainer.kubeflow.org",), is_own=True),
)

_WRITES: Final = (
    TRAINJOBS,
    JOBSETS,
    CONFIG_MAPS,
    SECRETS,
    COSCHEDULING_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
)


class Role(Enum):
    """What of the manager a process does."""

    ALL = auto()
    CONTROLLERS = auto()
    """All but the admission webhook."""
    WEBHOOK = auto()
    """The admission webhook alone."""


def find_namespace(service_account: Path = SERVICE_ACCOUNT) -> str:
    """Return the namespace that the process runs in."""
    try:
        return (service_account / "namespace").read_text().strip() or NAMESPACE
    except OSError:
        return NAMESPACE


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """What a process shall be."""

    configuration: Configuration
    gates: Collection[Gate]
    role: Role = Role.ALL
    namespace: str = NAMESPACE


async def build_manager(config: ConnectionConfig, plan: ProcessPlan, terminator: Terminator | None = None) -> Operator:
    """Put the manager together, ready to run.

    Raises RegistryError where the plugins of the configuration cannot be had, and ConfigError where the certificates
    of the connection cannot be used.
    """
    operator = Operator(config, build_settings(plan), writes=_WRITES, terminator=terminator)
    try:
        _add_parts(operator, plan)
    except BaseException:
        await operator.connection.close()
        raise
    return operator


def _add_parts(operator: Operator, plan: ProcessPlan) -> None:
    configuration = plan.configuration
    view = ClusterView(operator)
    runtimes = _build_training(view, plan, PluginMetrics(operator.registry))
    certificates = add_serving_certificate(operator, configuration, plan.namespace, plan.gates)
    metrics = configuration.metrics
    context = certificates.context if metrics.secure_serving else None
    operator.serve_metrics(metrics.bind_address, context, authorized=metrics.auth.enabled)
    if plan.role is not Role.CONTROLLERS:
        add_admission(operator, view, runtimes, configuration, certificates)
    if plan.role is not Role.WEBHOOK:
        _warn_of_unknown_kinds(configuration.controller)
        add_controllers(operator, view, runtimes, configuration, plan.gates)
        add_protection(operator, view, configuration, plan.gates)
        if Gate.TRAINJOB_STATUS in plan.gates:
            add_progress_server(operator, view, configuration, certificates)
    operator.manager.add(Stage.OTHERS, Runnable("settled memory", keep_settled))


def _warn_of_unknown_kinds(controller: Controller) -> None:
    """Tell of numbers that nobody asks for, which the original takes without a word: their kinds may be misspelt."""
    known = {str(resource.group_kind) for resource in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}
    for kind in controller.group_kind_concurrency:
        if kind not in known:
            _log.warning(
                "there is no such kind: its number is not used", field="controller.groupKindConcurrency", kind=kind
            )


def build_settings(plan: ProcessPlan) -> OperatorSettings:
    """Translate the configuration into the kit's settings."""
    configuration, is_webhook = plan.configuration, plan.role is Role.WEBHOOK
    election, health, limits = configuration.leader_election, configuration.health, configuration.client_connection
    is_elected = election.leader_elect and not is_webhook
    endpoints = decide_endpoints(health)
    return OperatorSettings(
        "ktrainer-webhook" if is_webhook else "ktrainer-manager",
        namespace=plan.namespace,
        lease_name=election.resource_name if is_elected else "",
        lease_namespace=election.resource_namespace,
        lease_times=_times_of(election) if is_elected else LeaseTimes(),
        health_address=health.health_probe_bind_address,
        liveness_endpoint=endpoints.liveness,
        readiness_endpoint=endpoints.readiness,
        qps=limits.qps,
        burst=limits.burst,
    )


def _times_of(election: LeaderElection) -> LeaseTimes:
    # A Lease tells whole seconds, and a longer lease is safe.
    lease_seconds = ceil(election.lease_duration.total_seconds())
    return LeaseTimes(lease_seconds, election.renew_deadline.total_seconds(), election.retry_period.total_seconds())


def _build_training(view: ClusterView, plan: ProcessPlan, observer: Observer) -> Runtimes:
    plugins, management = plan.configuration.plugins, plan.configuration.cert_management
    dependencies = Dependencies(
        reader=view,
        make_ssh_keys=make_ssh_keys,
        make_curve_keys=make_curve_keys,
        namespace=plan.namespace,
        service=management.webhook_service_name,
        status_port=plan.configuration.status_server.port,
        certificate_secret=management.webhook_secret_name,
    )
    selection = Selection(plugins.disabled, plugins.order, plugins.external)
    return build_training(dependencies, selection, plan.gates, observer)
