"""Runs the phases: knows its plugins only by the extension points that they implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.framework.errors import PluginError, RegistryError
from ktrainer.framework.findings import Findings
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
    from collections.abc import Mapping

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.info import Info
    from ktrainer.framework.watch import Watch
    from ktrainer.framework.workload import WorkloadStatus


class Framework:
    """Plugins, sorted by extension point; within each in the order in which they were given.

    Whatever a plugin raises comes out as a PluginError that names it. Holds nothing of any job.
    """

    def __init__(self, plugins: Mapping[str, Plugin]) -> None:
        """Raises RegistryError unless there is exactly one plugin that reports the status."""
        named = tuple(plugins.items())
        self.names = tuple(plugins)
        """The names of all plugins, in order."""
        self._validators = tuple((name, p) for name, p in named if isinstance(p, CustomValidationPlugin))
        self._builders = tuple((name, p) for name, p in named if isinstance(p, ComponentBuilderPlugin))
        self._watchers = tuple((name, p) for name, p in named if isinstance(p, WatchExtensionPlugin))
        self._phases = (
            *((name, p.enforce_ml_policy) for name, p in named if isinstance(p, EnforceMLPolicyPlugin)),
            *((name, p.enforce_pod_group_policy) for name, p in named if isinstance(p, EnforcePodGroupPolicyPlugin)),
            *((name, p.enforce_pod_spec) for name, p in named if isinstance(p, EnforcePodSpecPlugin)),
            *((name, p.pre_build) for name, p in named if isinstance(p, PreComponentBuilderPlugin)),
        )
        reporters = tuple((name, p) for name, p in named if isinstance(p, TrainJobStatusPlugin))
        if len(reporters) != 1:
            found = ", ".join(name for name, _ in reporters) or "none"
            raise RegistryError(f"exactly one plugin must report the status of TrainJobs; found: {found}")
        ((self._reporter_name, self._reporter),) = reporters

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """All that the plugins find, in their order."""
        findings = Findings()
        for name, plugin in self._validators:
            try:
                findings.add(await plugin.validate(info, old, new))
            except Exception as error:  # the boundary to code that may not be ours
                raise PluginError(name, "validate", error) from error
        return findings

    def enforce(self, info: Info, trainjob: TrainJob) -> None:
        """Run the phases that change the template, up to and including pre_build."""
        for name, phase in self._phases:
            info.env_log.writer = name
            try:
                phase(info, trainjob)
            except Exception as error:  # the boundary to code that may not be ours
                raise PluginError(name, phase.__name__, error) from error

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """What the plugins build of an Info that all phases have passed."""
        components: list[Component] = []
        for name, plugin in self._builders:
            try:
                components += await plugin.build(info, trainjob)
            except Exception as error:  # the boundary to code that may not be ours
                raise PluginError(name, "build", error) from error
        return components

    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        """How the workload is doing; none while there is none."""
        try:
            return await self._reporter.status(trainjob)
        except Exception as error:  # the boundary to code that may not be ours
            raise PluginError(self._reporter_name, "status", error) from error

    def watches(self) -> tuple[Watch, ...]:
        """What the plugins want to have watched, each once."""
        return tuple(dict.fromkeys(watch for _, plugin in self._watchers for watch in plugin.watches()))
