"""Adds the TrainJob controller to the program: its reconciler, its caches, and who wakes it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ktrainer.api.gates import Gate
from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.controllers.metrics import TrainJobMetrics
from ktrainer.controllers.references import BY_STATE, UNFINISHED_BY_RUNTIME, by_state, unfinished_by_runtime
from ktrainer.controllers.trainjob.applied import Applied
from ktrainer.controllers.trainjob.builder import Builder
from ktrainer.controllers.trainjob.departures import Departures, ForgetFinished
from ktrainer.controllers.trainjob.diagnosis import Diagnosis
from ktrainer.controllers.trainjob.events import CONTROLLER, Events
from ktrainer.controllers.trainjob.failure.firstfailure import fetch_first_failure
from ktrainer.controllers.trainjob.finisher import Finisher
from ktrainer.controllers.trainjob.publisher import Publisher
from ktrainer.controllers.trainjob.reconciler import ReconcilerParts, TrainJobReconciler
from ktrainer.controllers.trainjob.watches import BY_RUNTIME_CLASS, Concerned, by_runtime_class, may_have_ended
from ktrainer.controllers.trainjob.writer import Writer
from ktrainer.framework.watch import Concerns, Watch
from ktrainer.machinery.control.controller import ControllerSettings
from ktrainer.machinery.control.handlers import EnqueueAnew, EnqueueForObject, EnqueueForOwner, MapFunc
from ktrainer.machinery.control.standby import StandbyQueue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ktrainer.api.configuration import Configuration
    from ktrainer.app.clusterview import ClusterView
    from ktrainer.machinery.operator import Operator
    from ktrainer.runtime.registry import Runtimes

WORKERS: Final = 32
"""How many TrainJobs are worked on at once, if the configuration does not want more: most of them wait for answers."""


def add_controllers(
    operator: Operator,
    view: ClusterView,
    runtimes: Runtimes,
    configuration: Configuration,
    gates: Collection[Gate],
) -> None:
    """Add the controller that runs TrainJobs; it works while this replica leads."""
    watches = tuple(dict.fromkeys(watch for runtime in runtimes.all() for watch in runtime.watches()))
    jobsets = view.follow(Watch(JOBSETS))
    departures = Departures(view.trainjobs, jobsets)
    reconciler = _build_reconciler(operator, view, runtimes, departures, in_full=Gate.CONDITIONS_WHILE_RUNNING in gates)
    wanted = configuration.controller.group_kind_concurrency.get(str(TRAINJOBS.group_kind), 1)
    settings = ControllerSettings("trainjob_controller", workers=max(WORKERS, wanted))
    queue = operator.controller(settings, reconciler.reconcile)
    view.trainjobs.add_handler(ForgetFinished(departures))
    jobsets.add_handler(departures)
    _wake(StandbyQueue(queue, view.trainjobs.store), view, watches)


def _build_reconciler(
    operator: Operator,
    view: ClusterView,
    runtimes: Runtimes,
    departures: Departures,
    *,
    in_full: bool,
) -> TrainJobReconciler:
    # A watch of one object says nothing about the others of its kind.
    watches = {watch.resource: watch for runtime in runtimes.all() for watch in runtime.watches() if watch.key is None}
    client, written, applied = operator.connection.client, operator.written, Applied(operator.clock)
    metrics = TrainJobMetrics(operator.registry, view.trainjobs.store)
    events = Events(operator.recorder_of(CONTROLLER))
    publisher = Publisher(client, written, operator.clock, metrics, in_full=in_full)
    writer = Writer(client, view, watches, applied, written)
    return TrainJobReconciler(
        ReconcilerParts(
            trainjobs=view.trainjobs.reader,
            runtimes=runtimes,
            builder=Builder(writer, view, publisher, departures, events),
            publisher=publisher,
            finisher=Finisher(client, view, watches, runtimes),
            departures=departures,
            applied=applied,
            written=written,
            version_of=operator.cache.resource_version_of,
            server_time=client.server_time,
            diagnosis=Diagnosis(partial(fetch_first_failure, client)),
            events=events,
        )
    )


def _wake(queue: StandbyQueue, view: ClusterView, watches: Iterable[Watch]) -> None:
    """Give a TrainJob a turn when something changes that concerns it."""
    view.trainjobs.store.add_index(UNFINISHED_BY_RUNTIME, unfinished_by_runtime)
    view.trainjobs.store.add_index(BY_STATE, by_state)
    view.trainjobs.add_handler(EnqueueForObject(queue))
    runtimes = (view.training_runtimes, view.cluster_training_runtimes)
    concerned = Concerned(view.trainjobs, runtimes)
    for informer in runtimes:
        informer.store.add_index(BY_RUNTIME_CLASS, by_runtime_class)
        informer.add_handler(MapFunc(queue, partial(concerned.waiting_for, informer)))
    for watch in watches:
        if watch.optional:
            view.follow(watch).on_arrival(EnqueueAnew(queue, concerned.unfinished))
        match watch.concerns:
            case Concerns.OWNER:
                # An end is told before another TrainJob is begun: somebody may wait for it, and nodes for the next.
                handler = EnqueueForOwner(queue, TRAINJOBS, only_controller=True, is_urgent=may_have_ended)
                view.follow(watch).add_handler(handler)
            case Concerns.SUSPENDED_IN_NAMESPACE:
                view.follow(watch).add_handler(MapFunc(queue, concerned.suspended_in))
            case Concerns.SUSPENDED_WITH_RUNTIME_CLASS:
                view.follow(watch).add_handler(MapFunc(queue, concerned.suspended_with_class))
            case Concerns.UNFINISHED:
                view.follow(watch).add_handler(MapFunc(queue, concerned.unfinished))
