import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from clusters.wait import wait_for
from ktrainer.client.config.config import ExecPlugin
from ktrainer.client.credentials.execplugin import run_plugin
from ktrainer.client.errors import CredentialsFailed
from ktrainer.client.transport.tls import CertificatePair

# Another process takes the time that it takes.
pytestmark = pytest.mark.realtime

V1 = "client.authentication.k8s.io/v1"


def plugin(script: str, **settings: Any) -> ExecPlugin:
    return ExecPlugin("config: exec", V1, sys.executable, ("-c", script), **settings)


def printing(status: Mapping[str, object], version: str = V1) -> str:
    return f"print({json.dumps(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))})"


async def test_a_token_should_be_taken() -> None:
    output = await run_plugin(plugin(printing({"token": "t", "expirationTimestamp": "2026-02-03T04:05:06Z"})))
    assert (output.grant.header, output.grant.pair) == ("Bearer t", None)
    assert output.expires_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


async def test_null_should_count_as_absent() -> None:
    nothing = dict.fromkeys(["clientCertificateData", "clientKeyData", "expirationTimestamp"])
    output = await run_plugin(plugin(printing({"token": "t"} | nothing)))
    assert (output.grant.header, output.grant.pair, output.expires_at) == ("Bearer t", None, None)
    with pytest.raises(CredentialsFailed, match="neither a token"):
        await run_plugin(plugin(printing({"token": None} | nothing)))


async def test_a_certificate_should_be_taken() -> None:
    output = await run_plugin(plugin(printing({"clientCertificateData": "C", "clientKeyData": "K"})))
    assert (output.grant.header, output.grant.pair) == ("", CertificatePair(b"C", b"K"))
    assert output.expires_at is None


async def test_a_plugin_should_be_told_what_it_needs() -> None:
    script = (
        "import json, os, sys\n"
        "env = os.environ\n"
        "parts = [env['KUBERNETES_EXEC_INFO'], env['MINE'], str('PATH' in env), sys.stdin.read()]\n"
        "token = '|'.join(parts).replace(' ', '')\n"
        f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': {{'token': token}}}}))"
    )
    output = await run_plugin(plugin(script, environment={"MINE": "mine"}, cluster={"server": "https://x"}))
    info, *others = output.grant.header.removeprefix("Bearer ").split("|")
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }
    assert others == ["mine", "True", ""]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("import sys; sys.exit('log in first')", "exit code 1: log in first", id="exit"),
        pytest.param(
            "import sys; sys.stderr.write('x' * 300_000); sys.exit(3)", "exit code 3: xxx", id="long complaint"
        ),
        pytest.param("", "not an ExecCredential", id="nothing"),
        pytest.param("print('secret')", "not an ExecCredential", id="text"),
        pytest.param("print('[\"secret\"]')", "not an ExecCredential", id="list"),
        pytest.param(printing({"token": 3}), "not an ExecCredential", id="number"),
        pytest.param(printing({"token": "t", "expirationTimestamp": "secret"}), "not an ExecCredential", id="no time"),
        pytest.param(printing({"token": "t"}, "v2"), "it speaks 'v2'", id="version"),
        pytest.param(printing({}), "neither a token", id="empty"),
        pytest.param(printing({"clientCertificateData": "secret"}), "neither a token", id="no key"),
        pytest.param(
            printing({"token": "t", "clientKeyData": "secret"}), "one of a certificate and its key", id="no certificate"
        ),
        pytest.param(printing({"token": "a\r\nsecret: b"}), "cannot be sent", id="injection"),
    ],
)
async def test_a_plugin_that_fails_should_be_named_with_its_reason(script: str, message: str) -> None:
    with pytest.raises(CredentialsFailed) as caught:
        await run_plugin(plugin(script, install_hint="install it"))
    text = str(caught.value)
    assert text.startswith(f"config: exec: {sys.executable}: ")
    assert message in text
    assert text.endswith("(install it)")
    assert "secret" not in text
    assert len(text) < 3000


async def test_a_plugin_that_is_not_there_should_be_named() -> None:
    with pytest.raises(CredentialsFailed, match="/no/such/program: No such file"):
        await run_plugin(ExecPlugin("config", V1, "/no/such/program"))


async def test_a_plugin_should_not_outlive_those_who_wait(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    script = f"import os, time; open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    run = asyncio.create_task(run_plugin(plugin(script)))
    assert await asyncio.to_thread(wait_for, lambda: path.exists() and bool(path.read_text()), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not psutil.pid_exists(int(path.read_text()))


async def test_a_plugin_should_not_take_too_long() -> None:
    with pytest.raises(CredentialsFailed, match="not done after 0 s"):
        await run_plugin(plugin("import time; time.sleep(60)"), max_seconds=0.1)


@pytest.mark.parametrize("leaves_group", [False, True])
async def test_what_a_plugin_runs_should_not_keep_anybody_waiting(tmp_path: Path, leaves_group: bool) -> None:
    """A script that wraps another program, which holds the script's output as well."""
    path = tmp_path / "pid"
    script = (
        "import subprocess, sys\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(20)']\n"
        f"child = subprocess.Popen(sleep, start_new_session={leaves_group})\n"
        f"open({str(path)!r}, 'w').write(str(child.pid))\n"
        "child.wait()"
    )
    began_at = time.monotonic()
    run = asyncio.create_task(run_plugin(plugin(script)))
    assert await asyncio.to_thread(wait_for, lambda: path.exists() and bool(path.read_text()), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    child = int(path.read_text())
    try:
        assert time.monotonic() - began_at < 15
        assert leaves_group or await asyncio.to_thread(wait_for, lambda: _is_gone(child), 10)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(child).kill()


def _is_gone(pid: int) -> bool:
    # Where nobody collects orphans, one that was killed stays as a zombie.
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
