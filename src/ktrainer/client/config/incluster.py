"""The connection of a pod to the API server of its own cluster, as its service account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.client.config.config import ConfigError, ConnectionConfig, Material, TlsConfig, TokenFile
from ktrainer.client.config.proxy import proxy_of
from ktrainer.client.config.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def load_service_account(folder: Path, environ: Mapping[str, str]) -> ConnectionConfig:
    """Find the server in the environment, and the credentials in the folder that every pod has; raises ConfigError."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port.isdecimal():
        raise ConfigError("environment", "KUBERNETES_SERVICE_PORT" if host else "KUBERNETES_SERVICE_HOST", "not set")
    for name in ("token", "ca.crt"):
        try:
            empty = not (folder / name).read_bytes().strip()
        except OSError as error:
            raise ConfigError(str(folder / name), "", error.strerror or str(error)) from error
        if empty:
            raise ConfigError(str(folder / name), "", "the file is empty")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if not is_url(server):
        raise ConfigError("environment", "KUBERNETES_SERVICE_HOST", f"not the address of a server: {server!r}")
    return ConnectionConfig(
        server=server,
        tls=TlsConfig(authorities=Material(path=folder / "ca.crt")),
        credentials=TokenFile(folder / "token"),
        proxy=proxy_of(server, environ),
        namespace=_namespace_of(folder / "namespace"),
    )


def _namespace_of(path: Path) -> str:
    try:
        return path.read_text().strip() or "default"
    except OSError:
        return "default"
