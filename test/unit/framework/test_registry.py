from pathlib import Path
from typing import Any

import pytest

from ktrainer.framework.errors import RegistryError
from ktrainer.framework.framework import Framework
from ktrainer.framework.registry import ENTRY_POINTS, Selection, build_framework
from ktrainer.plugins.registry import REGISTRY
from support.training import dependencies

PACKAGE = """
from ktrainer.framework.plugin import EnforceMLPolicyPlugin

class Extra(EnforceMLPolicyPlugin):
    def __init__(self, dependencies):
        pass

    def enforce_ml_policy(self, info, trainjob):
        pass
"""
POINTS = f"""[{ENTRY_POINTS}]
extra = extra_package_of_a_test:Extra
torch = extra_package_of_a_test:Extra
broken = no_such_module_anywhere:Extra
"""


def failing(dependencies: object) -> Any:
    raise OSError("no disk")


def built(registry: Any = None, **selection: list[str]) -> Framework:
    return build_framework(registry or REGISTRY, dependencies(), Selection(**selection))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package with plugins, as pip leaves one behind."""
    (tmp_path / "extra_package_of_a_test.py").write_text(PACKAGE)
    folder = tmp_path / "extra_package_of_a_test-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-package-of-a-test\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)


def test_all_plugins_should_be_there_by_default() -> None:
    assert build_framework(REGISTRY, dependencies()).names == tuple(REGISTRY)


def test_plugins_should_be_disabled_by_name() -> None:
    rest = tuple(name for name in REGISTRY if name not in {"volcano", "flux"})
    assert built(disabled=["volcano", "flux"]).names == rest


def test_named_plugins_should_run_first_and_the_others_in_their_order() -> None:
    rest = tuple(name for name in REGISTRY if name not in {"jax", "mpi"})
    assert built(order=["jax", "mpi"]).names == ("jax", "mpi", *rest)


@pytest.mark.parametrize("field", ["disabled", "order"])
def test_a_name_that_no_plugin_has_should_be_refused(field: str) -> None:
    with pytest.raises(RegistryError, match=rf"plugins\.{field}: there is no plugin nope; there are: plainml, torch"):
        built(**{field: ["nope"]})


def test_a_framework_without_a_status_plugin_should_be_refused() -> None:
    with pytest.raises(RegistryError, match="exactly one plugin"):
        built(disabled=["jobset"])


@pytest.mark.usefixtures("installed")
def test_a_plugin_of_another_package_should_be_switched_on_by_name() -> None:
    assert built(external=["extra"]).names == (*REGISTRY, "extra")
    assert built(external=["extra"], order=["extra"]).names == ("extra", *REGISTRY)
    assert "extra" not in built().names


@pytest.mark.usefixtures("installed")
def test_a_plugin_of_another_package_should_not_take_a_name_that_is_taken() -> None:
    with pytest.raises(RegistryError, match=r"plugins\.external: there are two plugins named torch"):
        built(external=["torch"])


@pytest.mark.usefixtures("installed")
def test_a_plugin_that_is_not_installed_or_cannot_be_imported_should_be_named() -> None:
    with pytest.raises(
        RegistryError, match=r"plugins\.external: no installed package has a plugin nope .*: broken, extra, torch"
    ):
        built(external=["nope"])
    with pytest.raises(RegistryError, match="plugin broken cannot be imported: No module named"):
        built(external=["broken"])


def test_a_plugin_that_cannot_be_constructed_should_be_named() -> None:
    with pytest.raises(RegistryError, match="plugin bad cannot be constructed: no disk"):
        built({**REGISTRY, "bad": failing})


def test_what_is_no_plugin_should_be_refused() -> None:
    with pytest.raises(RegistryError, match="plugin odd is not a Plugin but a str"):
        built({**REGISTRY, "odd": lambda dependencies: "text"})
