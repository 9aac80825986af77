"""The example of a plugin in a package of its own, used the way its users would."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ktrainer.app.documents import run_now
from ktrainer.app.training import build_training
from ktrainer.framework.registry import Selection
from ktrainer.runtime.errors import Rejected
from ktrainer.runtime.plan import Plan
from support.training import container, dependencies, job, runtime, trainjob

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "plugin"
GPUS = runtime(job("node", "trainer", container(resources={"limits": {"nvidia.com/gpu": "8"}})), mlPolicy={"torch": {}})


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves behind for the example."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "ktrainer_nccl-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["ktrainer.plugins"]
    text = "".join(f"{name} = {where}\n" for name, where in points.items())
    (folder / "entry_points.txt").write_text(f"[ktrainer.plugins]\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLE / "src")


def plan(value: dict[str, Any], *external: str, **trainer: Any) -> Plan:
    wanted = trainjob(trainer=trainer)
    runtimes = build_training(dependencies(value), Selection(external=external))
    return run_now(runtimes.of(wanted.spec.runtime_ref).plan(wanted))


def pod_spec(made: Plan) -> dict[str, Any]:
    job_template = made.components[-1].body["spec"]["replicatedJobs"][0]["template"]
    spec: dict[str, Any] = job_template["spec"]["template"]["spec"]
    return spec


@pytest.mark.usefixtures("_installed")
def test_the_plugin_should_work_once_it_is_switched_on() -> None:
    spec = pod_spec(plan(GPUS, "nccl"))
    assert {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"} in spec["containers"][0]["env"]
    assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    assert "volumes" not in pod_spec(plan(GPUS))
    assert "volumes" not in pod_spec(plan(runtime(), "nccl"))


@pytest.mark.usefixtures("_installed")
def test_the_plugin_should_refuse_what_it_sets_itself() -> None:
    env = [{"name": "NCCL_SOCKET_IFNAME", "value": "ib0"}]
    with pytest.raises(Rejected, match=r"spec\.trainer\.env: Forbidden: NCCL_SOCKET_IFNAME is set by the plugin nccl"):
        plan(GPUS, "nccl", env=env)
    assert plan(runtime(), "nccl", env=env).nodes == 1


def test_the_documentation_should_show_the_example_as_it_is() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    assert (EXAMPLE / "src" / "ktrainer_nccl.py").read_text() in text
    points = '[project.entry-points."ktrainer.plugins"]\nnccl = "ktrainer_nccl:Nccl"\n'
    assert points in text
    assert points in (EXAMPLE / "pyproject.toml").read_text()
