"""Runs a credential plugin once.

What to run is prepared by kubernetes_asyncio; running it is not left to it, since it waits for ever, leaves the program
behind when it is cancelled, and stops reading when the program complains at length.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from ktrainer.client.config.lightimport import import_light
from ktrainer.client.credentials.credentials import Grant, bearer_of
from ktrainer.client.errors import CredentialsFailed
from ktrainer.client.transport.tls import CertificatePair
from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from datetime import datetime
    from types import ModuleType

    from ktrainer.client.config.config import ExecPlugin

RUN_SECONDS = 60.0
"""How long a plugin may take."""

KILL_SECONDS = 1.0
"""How long a plugin that was killed may take to be gone."""

_TEXT_LIMIT = 2048
"""How much of what a plugin complains about is kept."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a plugin gave us."""

    grant: Grant
    expires_at: datetime | None
    """None for a grant that is good until the server refuses it."""


class _Status(msgspec.Struct, rename="camel"):
    # Not all who write JSON leave out what they do not have.
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status


async def run_plugin(plugin: ExecPlugin, max_seconds: float = RUN_SECONDS) -> Output:
    """Run the plugin and read what it prints; raises CredentialsFailed. The program ends if this is cancelled."""
    provider = _provider_of(plugin)
    try:
        process = await asyncio.create_subprocess_exec(
            *provider.args,
            env=provider.env | {"KUBERNETES_EXEC_INFO": _info_of(plugin)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Many a plugin is a script: what it runs has to end with it, and goes by the same process group.
            start_new_session=True,
        )
    except OSError as error:
        raise _failure(plugin, error.strerror or str(error)) from error
    try:
        async with asyncio.timeout(max_seconds):
            printed, complaint = await process.communicate()
    except TimeoutError:
        raise _failure(plugin, f"not done after {max_seconds:.0f} s") from None
    finally:
        if process.returncode is None:
            await _kill(process)
    if process.returncode:
        text = complaint[:_TEXT_LIMIT].decode(errors="replace").strip()
        raise _failure(plugin, f"exit code {process.returncode}: {text}")
    return _output_of(plugin, printed)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # Whoever has left the group may hold its pipes for ever, and so long the plugin does not count as gone.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KILL_SECONDS):
            await process.wait()


@cache
def _modules() -> tuple[ModuleType, ...]:
    return import_light("kubernetes_asyncio.config.exec_provider", "kubernetes_asyncio.config.kube_config")


def _provider_of(plugin: ExecPlugin) -> Any:
    exec_provider, kube_config = _modules()
    settings = {
        "apiVersion": plugin.api_version,
        "command": plugin.command,
        "args": list(plugin.arguments),
        "env": [{"name": name, "value": value} for name, value in plugin.environment.items()],
    }
    return exec_provider.ExecProvider(kube_config.ConfigNode("exec", settings))


def _info_of(plugin: ExecPlugin) -> str:
    spec: dict[str, object] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    return orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _output_of(plugin: ExecPlugin, printed: bytes) -> Output:
    try:
        credential = msgspec.json.decode(printed, type=_Credential)
        status = credential.status
        expires_at = None if status.expiration_timestamp is None else parse_time(status.expiration_timestamp)
    except (msgspec.MsgspecError, ValueError):
        # The error may quote what was printed, which is secret.
        raise _failure(plugin, "what it prints is not an ExecCredential") from None
    if credential.api_version != plugin.api_version:
        raise _failure(plugin, f"it speaks {credential.api_version!r} instead of {plugin.api_version!r}")
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise _failure(plugin, "it prints neither a token nor a certificate with its key")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _failure(plugin, "it prints one of a certificate and its key without the other")
    pair = None
    if status.client_certificate_data and status.client_key_data:
        pair = CertificatePair(status.client_certificate_data.encode(), status.client_key_data.encode())
    try:
        return Output(Grant(bearer_of(status.token) if status.token else "", pair), expires_at)
    except ValueError:
        raise _failure(plugin, "it prints a token that cannot be sent") from None


def _failure(plugin: ExecPlugin, message: str) -> CredentialsFailed:
    hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
    return CredentialsFailed(f"{plugin.source}: {plugin.command}: {message}{hint}")
