"""Runs the phases: knows its plugins only by the extension points that they implement."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from ktrainer.framework.errors import PluginError, RegistryError
from ktrainer.framework.findings import Findings
from ktrainer.framework.observer import Unobserved
from ktrainer.framework.plugin import (
    ComponentBuilderPlugin,
    CustomValidationPlugin,
    EnforceMLPolicyPlugin,
    EnforcePodGroupPolicyPlugin,
    EnforcePodSpecPlugin,
    Plugin,
    PreComponentBuilderPlugin,
    TrainJobStatusPlugin,
    WatchExtensionPlugin,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.info import Info
    from ktrainer.framework.observer import Observer, Record
    from ktrainer.framework.watch import Watch
    from ktrainer.framework.workload import WorkloadStatus

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Awaited = TypeVar("_Awaited")


class Framework:
    """Plugins, sorted by extension point; within each in the order in which they were given.

    Whatever a plugin raises comes out as a PluginError that names it. Holds nothing of any job.
    """

    def __init__(self, plugins: Mapping[str, Plugin], observer: Observer | None = None) -> None:
        """Raises RegistryError unless there is exactly one plugin that reports the status."""
        named = tuple(plugins.items())
        self.names = tuple(plugins)
        """The names of all plugins, in order."""
        watched_by = observer or Unobserved()

        def step(name: str, point: str, method: Callable[_Args, _Result]) -> _Step[_Args, _Result]:
            return _Step(name, point, method, watched_by.record_of(name, point))

        self._validators = tuple(
            step(name, "validate", p.validate) for name, p in named if isinstance(p, CustomValidationPlugin)
        )
        self._builders = tuple(
            step(name, "build", p.build) for name, p in named if isinstance(p, ComponentBuilderPlugin)
        )
        self._watchers = tuple(p for _, p in named if isinstance(p, WatchExtensionPlugin))
        self._phases = (
            *(
                step(name, "enforce_ml_policy", p.enforce_ml_policy)
                for name, p in named
                if isinstance(p, EnforceMLPolicyPlugin)
            ),
            *(
                step(name, "enforce_pod_group_policy", p.enforce_pod_group_policy)
                for name, p in named
                if isinstance(p, EnforcePodGroupPolicyPlugin)
            ),
            *(
                step(name, "enforce_pod_spec", p.enforce_pod_spec)
                for name, p in named
                if isinstance(p, EnforcePodSpecPlugin)
            ),
            *(step(name, "pre_build", p.pre_build) for name, p in named if isinstance(p, PreComponentBuilderPlugin)),
        )
        reporters = tuple((name, p) for name, p in named if isinstance(p, TrainJobStatusPlugin))
        if len(reporters) != 1:
            found = ", ".join(name for name, _ in reporters) or "none"
            raise RegistryError(f"exactly one plugin must report the status of TrainJobs; found: {found}")
        ((name, reporter),) = reporters
        self._reporter = step(name, "status", reporter.status)

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """All that the plugins find, in their order."""
        findings = Findings()
        for step in self._validators:
            findings.add(await step.wait(info, old, new))
        return findings

    def enforce(self, info: Info, trainjob: TrainJob) -> None:
        """Run the phases that change the template, up to and including pre_build."""
        for step in self._phases:
            info.env_log.writer = step.plugin
            step.run(info, trainjob)

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """What the plugins build of an Info that all phases have passed."""
        components: list[Component] = []
        for step in self._builders:
            components += await step.wait(info, trainjob)
        return components

    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        """How the workload is doing; none while there is none."""
        return await self._reporter.wait(trainjob)

    def watches(self) -> tuple[Watch, ...]:
        """What the plugins want to have watched, each once."""
        return tuple(dict.fromkeys(watch for plugin in self._watchers for watch in plugin.watches()))


@dataclass(frozen=True, slots=True)
class _Step(Generic[_Args, _Result]):
    """What one plugin does at one extension point: timed, and whatever it raises comes out as a PluginError."""

    plugin: str
    point: str
    method: Callable[_Args, _Result]
    record: Record

    def run(self, *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        """Do it."""
        began_at = perf_counter()
        try:
            result = self.method(*args, **kwargs)
        except Exception as error:  # the boundary to code that may not be ours
            raise self._failure(error, began_at) from error
        self.record(perf_counter() - began_at, False)
        return result

    async def wait(self: _Step[_Args, Awaitable[_Awaited]], *args: _Args.args, **kwargs: _Args.kwargs) -> _Awaited:
        """Do it, and wait for what comes of it."""
        began_at = perf_counter()
        try:
            result = await self.method(*args, **kwargs)
        except Exception as error:  # as above
            raise self._failure(error, began_at) from error
        self.record(perf_counter() - began_at, False)
        return result

    def _failure(self, error: Exception, began_at: float) -> PluginError:
        self.record(perf_counter() - began_at, True)
        return PluginError(self.plugin, self.point, error)
