"""The extension points: one small class each. A plugin derives from those that it has something to do at.

The phases run in this order: validate, which only looks, enforce_ml_policy, enforce_pod_group_policy,
enforce_pod_spec, pre_build, build. Within a phase plugins run in the order of the registry. A plugin that does not
apply to a job does nothing. None may write to the TrainJob, which is frozen, nor keep anything of a job.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.findings import Findings
    from ktrainer.framework.info import Info
    from ktrainer.framework.watch import Watch
    from ktrainer.framework.workload import WorkloadStatus


class Plugin(ABC):  # noqa: B024 - abstract in name only: the extension points below add the methods
    """A part of the framework that can be switched off, ordered and exchanged."""


class CustomValidationPlugin(Plugin):
    """Judges a TrainJob at admission, and again before anything is built for it."""

    @abstractmethod
    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Find all that is wrong. `info` is as no phase has touched it yet; `old` is there for an update only."""


class EnforceMLPolicyPlugin(Plugin):
    """Sets up a framework: counts, variables, commands."""

    @abstractmethod
    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Change `info` as the runtime's `mlPolicy` wants it."""


class EnforcePodGroupPolicyPlugin(Plugin):
    """Sets up gang scheduling."""

    @abstractmethod
    def enforce_pod_group_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Change `info` as the runtime's `podGroupPolicy` wants it."""


class EnforcePodSpecPlugin(Plugin):
    """Changes pod templates after the policies."""

    @abstractmethod
    def enforce_pod_spec(self, info: Info, trainjob: TrainJob) -> None:
        """Change the pod templates in `info`."""


class PreComponentBuilderPlugin(Plugin):
    """Puts into the template what all other plugins have decided."""

    @abstractmethod
    def pre_build(self, info: Info, trainjob: TrainJob) -> None:
        """Make the template of `info` complete."""


class ComponentBuilderPlugin(Plugin):
    """Builds objects."""

    @abstractmethod
    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build what the TrainJob needs, given what is there already; `info` is final."""


class TrainJobStatusPlugin(Plugin):
    """Reports how the workload is doing. A framework has exactly one."""

    @abstractmethod
    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        """How the workload is doing; none while there is none."""


class WatchExtensionPlugin(Plugin):
    """Wants to hear of changes to other objects than TrainJobs."""

    @abstractmethod
    def watches(self) -> Iterable[Watch]:
        """What is to be watched."""
