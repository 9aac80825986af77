from typing import Any

import pytest

from ktrainer.api.trainjob import RuntimeRef
from ktrainer.framework.registry import build_framework
from ktrainer.plugins.registry import REGISTRY as PLUGINS
from ktrainer.runtime.errors import UnsupportedRuntime
from ktrainer.runtime.registry import REGISTRY, Materials, Registration, build_runtimes
from ktrainer.runtime.runtime import Runtime
from support.training import dependencies, trainjob


def materials() -> Materials:
    given = dependencies()
    return Materials(given.reader, lambda: build_framework(PLUGINS, given))


def test_the_two_runtimes_should_share_one_framework() -> None:
    runtimes = build_runtimes(materials())
    namespaced = runtimes.of(trainjob(kind="TrainingRuntime").spec.runtime_ref)
    cluster = runtimes.of(trainjob().spec.runtime_ref)
    assert namespaced is not cluster
    assert namespaced.framework is cluster.framework
    assert set(runtimes.all()) == {namespaced, cluster}


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ({"kind": "Foo"}, r"^unsupported runtime: Foo\.trainer\.kubeflow\.org$"),
        ({"api_group": "acme.io"}, r"^unsupported runtime: ClusterTrainingRuntime\.acme\.io$"),
        ({"api_group": ""}, "^unsupported runtime: ClusterTrainingRuntime$"),
    ],
)
def test_an_unknown_kind_should_be_named(ref: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedRuntime, match=message):
        build_runtimes(materials()).of(RuntimeRef(name="x", **ref))


def test_a_runtime_should_be_made_after_those_that_it_needs() -> None:
    made: list[str] = []

    def registered(name: str, *needs: str) -> Registration:
        def build(given: Materials, runtimes: Any) -> Runtime:
            assert set(needs) <= set(runtimes)
            made.append(name)
            return REGISTRY["TrainingRuntime.trainer.kubeflow.org"].build(given, {})

        return Registration(build, needs)

    build_runtimes(materials(), {"a": registered("a", "c"), "b": registered("b", "a"), "c": registered("c")})
    assert made == ["c", "a", "b"]


@pytest.mark.parametrize(
    "needs", [{"a": ("b",), "b": ("a",)}, {"a": ("nobody",)}], ids=["each other", "somebody who is not there"]
)
def test_needs_that_cannot_be_met_should_be_refused(needs: dict[str, tuple[str, ...]]) -> None:
    build = REGISTRY["TrainingRuntime.trainer.kubeflow.org"].build
    with pytest.raises(ValueError, match="needs itself, or is not registered: a -> "):
        build_runtimes(materials(), {name: Registration(build, each) for name, each in needs.items()})
