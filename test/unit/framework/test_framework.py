from typing import Any

import pytest

from ktrainer.api.resources import CONFIG_MAPS, SECRETS
from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.framework.component import Component
from ktrainer.framework.container import env_var
from ktrainer.framework.errors import EnvConflict, PluginError, RegistryError
from ktrainer.framework.findings import Findings
from ktrainer.framework.framework import Framework
from ktrainer.framework.info import Info
from ktrainer.framework.observer import Record
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
from ktrainer.framework.watch import Watch
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.plugins.registry import REGISTRY
from support.training import dependencies, info_of, trainjob


class Status(TrainJobStatusPlugin):
    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        return WorkloadStatus(restarts=7)


class Tracer(
    CustomValidationPlugin,
    EnforceMLPolicyPlugin,
    EnforcePodGroupPolicyPlugin,
    EnforcePodSpecPlugin,
    PreComponentBuilderPlugin,
    ComponentBuilderPlugin,
    WatchExtensionPlugin,
):
    """Notes when it is called; fails at the point that it is told to."""

    def __init__(self, name: str, trace: list[str], fails_at: str = "") -> None:
        self._name, self._trace, self._fails_at = name, trace, fails_at

    def note(self, point: str) -> None:
        self._trace.append(f"{self._name}.{point}")
        if point == self._fails_at:
            raise ValueError("no luck")

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        self.note("validate")
        return Findings([fields.required(Path(self._name))], [f"warned by {self._name}"])

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        self.note("enforce_ml_policy")

    def enforce_pod_group_policy(self, info: Info, trainjob: TrainJob) -> None:
        self.note("enforce_pod_group_policy")

    def enforce_pod_spec(self, info: Info, trainjob: TrainJob) -> None:
        self.note("enforce_pod_spec")

    def pre_build(self, info: Info, trainjob: TrainJob) -> None:
        self.note("pre_build")

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        self.note("build")
        return [Component(CONFIG_MAPS, {"metadata": {"name": self._name}})]

    def watches(self) -> list[Watch]:
        return [Watch(CONFIG_MAPS, labelled=True), Watch(SECRETS)]


class Setter(EnforceMLPolicyPlugin):
    def __init__(self, value: str) -> None:
        self._value = value

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        assert info.trainer_container is not None
        info.trainer_container.set_env(env_var("X", self._value))


PHASES = ("enforce_ml_policy", "enforce_pod_group_policy", "enforce_pod_spec", "pre_build")


def test_phases_should_run_in_order_and_plugins_within_them() -> None:
    trace: list[str] = []
    framework = Framework({"b": Tracer("b", trace), "a": Tracer("a", trace), "status": Status()})
    framework.enforce(info_of(), trainjob())
    assert trace == [f"{name}.{phase}" for phase in PHASES for name in "ba"]


def test_all_findings_should_be_collected_in_order() -> None:
    framework = Framework({"b": Tracer("b", []), "a": Tracer("a", []), "status": Status()})
    findings = run_now(framework.validate(info_of(), None, trainjob()))
    assert [str(error.path) for error in findings.errors] == ["b", "a"]
    assert findings.warnings == ["warned by b", "warned by a"]


def test_components_should_come_in_the_order_of_the_plugins() -> None:
    framework = Framework({"b": Tracer("b", []), "a": Tracer("a", []), "status": Status()})
    assert [component.name for component in run_now(framework.build(info_of(), trainjob()))] == ["b", "a"]


def test_a_watch_should_be_wanted_once() -> None:
    framework = Framework({"b": Tracer("b", []), "a": Tracer("a", []), "status": Status()})
    assert framework.watches() == (Watch(CONFIG_MAPS, labelled=True), Watch(SECRETS))


def test_the_status_should_come_from_its_one_plugin() -> None:
    assert run_now(Framework({"status": Status()}).status(trainjob())) == WorkloadStatus(restarts=7)


@pytest.mark.parametrize(
    "plugins",
    [pytest.param({}, id="none"), pytest.param({"one": Status(), "two": Status()}, id="two")],
)
def test_there_should_be_exactly_one_status_plugin(plugins: dict[str, Plugin]) -> None:
    with pytest.raises(RegistryError, match="exactly one plugin"):
        Framework(plugins)


@pytest.mark.parametrize("phase", PHASES)
def test_a_plugin_that_fails_in_a_phase_should_be_named(phase: str) -> None:
    framework = Framework({"bad": Tracer("bad", [], phase), "status": Status()})
    with pytest.raises(PluginError, match=f"plugin bad: {phase}: no luck") as failed:
        framework.enforce(info_of(), trainjob())
    assert failed.value.plugin == "bad"
    assert isinstance(failed.value.__cause__, ValueError)


def test_a_plugin_that_fails_to_validate_build_or_report_should_be_named() -> None:
    class Mute(TrainJobStatusPlugin):
        async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
            raise KeyError("gone")

    framework = Framework({"v": Tracer("v", [], "validate"), "status": Mute()})
    with pytest.raises(PluginError, match="plugin v: validate"):
        run_now(framework.validate(info_of(), None, trainjob()))
    framework = Framework({"b": Tracer("b", [], "build"), "status": Mute()})
    with pytest.raises(PluginError, match="plugin b: build"):
        run_now(framework.build(info_of(), trainjob()))
    with pytest.raises(PluginError, match="plugin status: status"):
        run_now(framework.status(trainjob()))


def test_plugins_that_disagree_about_a_variable_should_be_told_apart() -> None:
    framework = Framework({"one": Setter("1"), "two": Setter("2"), "status": Status()})
    with pytest.raises(PluginError, match=r"plugin two: .*variable X .* by the plugin one") as failed:
        framework.enforce(info_of(), trainjob())
    assert isinstance(failed.value.__cause__, EnvConflict)


def test_plugins_that_agree_about_a_variable_should_not_be_a_conflict() -> None:
    info = info_of()
    Framework({"one": Setter("1"), "two": Setter("1"), "status": Status()}).enforce(info, trainjob())
    assert info.trainer_container is not None
    assert info.trainer_container.env_value("X") == "1"


POINTS: dict[str, tuple[type[Any], ...]] = {
    "plainml": (EnforceMLPolicyPlugin,),
    "torch": (CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin),
    "mpi": (CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin),
    "jax": (CustomValidationPlugin, EnforceMLPolicyPlugin),
    "xgboost": (CustomValidationPlugin, EnforceMLPolicyPlugin),
    "flux": (CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin),
    "coscheduling": (EnforcePodGroupPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin),
    "volcano": (CustomValidationPlugin, EnforcePodGroupPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin),
    "trainjobstatus": (EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin),
    "jobset": (CustomValidationPlugin, EnforcePodSpecPlugin, PreComponentBuilderPlugin, ComponentBuilderPlugin,
               TrainJobStatusPlugin, WatchExtensionPlugin),
}  # fmt: skip


def test_the_plugins_should_be_registered_in_their_order() -> None:
    assert list(REGISTRY) == list(POINTS)


@pytest.mark.parametrize("name", POINTS)
def test_a_plugin_should_implement_its_points_and_no_others(name: str) -> None:
    every = set(Plugin.__subclasses__())
    plugin = REGISTRY[name](dependencies())
    assert {point for point in every if isinstance(plugin, point)} == set(POINTS[name])


class Witness:
    """Notes which records there are, and what is recorded."""

    def __init__(self) -> None:
        self.series: list[tuple[str, str]] = []
        self.runs: list[tuple[str, str, bool]] = []

    def record_of(self, plugin: str, point: str) -> Record:
        self.series.append((plugin, point))

        def record(seconds: float, has_failed: bool) -> None:
            assert 0 <= seconds < 60
            self.runs.append((plugin, point, has_failed))

        return record


def pass_through(framework: Framework, info: Info, job: TrainJob) -> None:
    run_now(framework.validate(info, None, job))
    framework.enforce(info, job)
    run_now(framework.build(info, job))


def test_an_observer_should_know_all_plugins_and_points_before_they_run() -> None:
    witness = Witness()
    Framework({"a": Tracer("a", []), "status": Status()}, witness)
    assert sorted(witness.series) == sorted(
        [("a", point) for point in ("validate", *PHASES, "build")] + [("status", "status")]
    )
    assert witness.runs == []


def test_an_observer_should_hear_of_every_run() -> None:
    witness, info, job = Witness(), info_of(), trainjob()
    framework = Framework({"a": Tracer("a", []), "status": Status()}, witness)
    pass_through(framework, info, job)
    run_now(framework.status(job))
    assert witness.runs == [
        *(("a", point, False) for point in ("validate", *PHASES, "build")),
        ("status", "status", False),
    ]


@pytest.mark.parametrize("point", ["validate", "pre_build", "build"])
def test_an_observer_should_hear_of_failures(point: str) -> None:
    witness, info, job = Witness(), info_of(), trainjob()
    framework = Framework({"a": Tracer("a", [], fails_at=point), "status": Status()}, witness)
    with pytest.raises(PluginError, match=f"plugin a: {point}: no luck"):
        pass_through(framework, info, job)
    assert witness.runs[-1] == ("a", point, True)
    assert not any(has_failed for _, _, has_failed in witness.runs[:-1])
