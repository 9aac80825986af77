"""The commands without --offline: what no file has is looked for in the cluster of a kubeconfig."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from ktrainer.cli.main import main
from support.scriptedserver import ScriptedServer, answer, failure, serving
from support.training import job, runtime, trainjob_json

TORCH = runtime(mlPolicy={"torch": {}})
PATH = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/rt"
VOLCANO = runtime(job("node", "trainer", pod={"priorityClassName": "high"}), podGroupPolicy={"volcano": {}})


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with serving() as made:
        yield made


def kubeconfig(folder: Path, url: str, **settings: object) -> str:
    file = folder / "kubeconfig"
    named = {"name": "it"}
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{**named, "cluster": {"server": url, **settings}}],
                "users": [{**named, "user": {}}],
                "contexts": [{**named, "context": {"cluster": "it", "user": "it"}}],
                "current-context": "it",
            }
        )
    )
    return str(file)


async def run(folder: Path, url: str, *values: dict[str, Any], command: str = "render") -> int:
    file = folder / "in.yaml"
    file.write_text("\n---\n".join(map(json.dumps, values)))
    return await asyncio.to_thread(main, [command, "-f", str(file), "--kubeconfig", kubeconfig(folder, url)])


async def test_a_runtime_that_no_file_has_should_be_read_from_the_cluster(
    tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.will(answer(200, TORCH))
    assert await run(tmp_path, server.url, trainjob_json()) == 0
    assert [request.path for request in server.requests] == [PATH]
    assert [each["kind"] for each in yaml.safe_load_all(capsys.readouterr().out)] == ["ConfigMap", "JobSet"]


async def test_files_that_are_complete_should_need_no_cluster(tmp_path: Path, server: ScriptedServer) -> None:
    assert await run(tmp_path, server.url, TORCH, trainjob_json()) == 0
    assert server.requests == []


@pytest.mark.parametrize("command", ["render", "validate"])
async def test_a_runtime_that_the_cluster_lacks_should_be_a_finding(
    command: str, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.responder = lambda request: (failure(404, "NotFound"),)
    assert await run(tmp_path, server.url, trainjob_json(), command=command) == 1
    assert "ClusterTrainingRuntime" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "validate"])
async def test_a_cluster_that_cannot_be_reached_should_be_told(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(tmp_path, "http://127.0.0.1:9", trainjob_json(), command=command) == 3
    assert capsys.readouterr().err.startswith("ktrainer: the cluster cannot be asked: ")


@pytest.mark.parametrize("body", ["<html>Sign in</html>", "", "[]", "null", '{"kind": "ClusterTrainingRuntime"}'])
async def test_an_answer_of_something_else_should_be_told_as_such(
    body: str, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.will(answer(200, body.encode()))
    assert await run(tmp_path, server.url, trainjob_json()) == 3
    assert capsys.readouterr().err.startswith("ktrainer: the cluster cannot be asked: the answer is not ")


@pytest.mark.parametrize("command", ["render", "validate"])
async def test_a_runtime_of_an_impossible_name_should_be_a_finding(
    command: str, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(tmp_path, server.url, trainjob_json(runtime=".."), command=command) == 1
    assert "the ClusterTrainingRuntime must exist" in capsys.readouterr().err
    assert server.requests == []


async def test_a_page_instead_of_a_refusal_should_be_one_line(
    tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.responder = lambda request: (answer(403, b"<html>\n\x1b[31mSign in</html>\n"),)
    assert await run(tmp_path, server.url, trainjob_json()) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "403: <html>\\n\\x1b[31mSign in</html>" in line


async def test_a_cluster_that_does_not_know_the_kind_should_be_told(
    tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.will(answer(404, b"404 page not found\n"))
    assert await run(tmp_path, server.url, trainjob_json()) == 3
    assert "it does not serve ClusterTrainingRuntime.trainer.kubeflow.org: 404: " in capsys.readouterr().err


async def test_a_warning_of_the_client_should_not_be_among_the_output(
    tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kubeconfig(tmp_path, server.url, **{"insecure-skip-tls-verify": True})
    (tmp_path / "in.json").write_text(json.dumps(trainjob_json()))
    server.will(answer(200, TORCH))
    arguments = ["render", "-o", "json", "-f", str(tmp_path / "in.json"), "--kubeconfig", file]
    assert await asyncio.to_thread(main, arguments) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "List"
    assert err.count("\n") == 1
    assert f" WARNING the API server's certificate is not verified server={server.url}" in err


async def test_a_kubeconfig_that_does_not_exist_should_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.yaml"
    file.write_text(json.dumps(trainjob_json()))
    arguments = ["render", "-f", str(file), "--kubeconfig", str(tmp_path / "nope")]
    assert await asyncio.to_thread(main, arguments) == 3
    assert "nope" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "validate"])
async def test_a_plugin_that_cannot_ask_should_not_be_blamed(
    command: str, tmp_path: Path, server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.responder = lambda request: (failure(403, "Forbidden"),)
    assert await run(tmp_path, server.url, VOLCANO, trainjob_json(), command=command) == 3
    assert "plugin" not in capsys.readouterr().err


async def test_what_an_earlier_pass_made_should_not_be_looked_for(tmp_path: Path, server: ScriptedServer) -> None:
    server.responder = lambda request: (answer(200, {"metadata": {"name": "high"}}),)
    assert await run(tmp_path, server.url, VOLCANO, trainjob_json()) == 0
    assert {request.path for request in server.requests} == {"/apis/scheduling.k8s.io/v1/priorityclasses/high"}
