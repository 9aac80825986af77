"""How to reach an API server and as whom, and where we find that out.

Loading reads and checks everything that does not need the network or another program, so that mistakes show at once and
by name. Contents of files that may change later, such as tokens, are read again by those who use them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the credentials of its service account."""


class ConfigError(Exception):
    """A configuration that cannot be used."""

    def __init__(self, path: str, field: str, message: str) -> None:
        super().__init__(f"{path}: {field}: {message}" if field else f"{path}: {message}")
        self.path = path
        """The file, or what else the setting comes from."""
        self.field = field
        """The place in it; empty where it is about the whole."""


@dataclass(frozen=True, slots=True)
class Material:
    """Certificates or a key in PEM: a file that may change, or fixed bytes."""

    path: Path | None = None
    data: bytes = field(default=b"", repr=False)
    setting: tuple[str, str] | None = field(default=None, compare=False)
    """The kubeconfig and the field in it that say so, for messages; None where the path alone is known."""

    def read(self) -> bytes:
        """Return what it is now; raises OSError."""
        return self.data if self.path is None else self.path.read_bytes()

    def error(self, message: str) -> ConfigError:
        """What to raise where it cannot be used."""
        if self.setting is None:
            return ConfigError(str(self), "", message)
        return ConfigError(*self.setting, message if self.path is None else f"{self.path}: {message}")

    def __str__(self) -> str:
        return "embedded data" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Whom to trust, and what to show."""

    authorities: Material | None = None
    """None trusts what the system trusts."""
    certificate: Material | None = None
    key: Material | None = None
    """There exactly if the certificate is."""
    server_name: str = ""
    """The name to look for in the server's certificate, where it is not that of the URL."""
    insecure: bool = False
    """Whether the server's certificate is not looked at."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """A fixed value of the Authorization header."""

    header: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A bearer token in a file that somebody else keeps fresh."""

    path: Path


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials."""

    source: str
    """Where it is configured, for messages."""
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    """What to tell a user who does not have it."""
    cluster: Mapping[str, object] | None = None
    """What the plugin is told about the cluster, where it asks for it."""


CredentialSource: TypeAlias = Authorization | TokenFile | ExecPlugin | None
"""None authenticates by a certificate, or not at all."""


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """One API server, and one identity."""

    server: str
    """Its URL, without a slash at the end."""
    tls: TlsConfig = TlsConfig()
    credentials: CredentialSource = None
    proxy: str = ""
    """The URL of an HTTP proxy; empty for none."""
    namespace: str = "default"
    """The namespace to use where none is given."""


def load_config(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ConnectionConfig:
    """Take the given kubeconfig, or those in $KUBECONFIG, or the pod's service account, or ~/.kube/config.

    Raises ConfigError. A pod's service account has no contexts, so it is left out where one is asked for.
    """
    # Imported here since each of them builds on this module, and one of them is needed.
    from ktrainer.client.config.incluster import load_service_account
    from ktrainer.client.config.kubeconfig import load_kubeconfig

    if kubeconfig is not None:
        return load_kubeconfig([kubeconfig], context, environ)
    if named := [Path(text).expanduser() for text in environ.get("KUBECONFIG", "").split(os.pathsep) if text]:
        return load_kubeconfig([path for path in named if _has_content(path)] or named, context, environ)
    if "KUBERNETES_SERVICE_HOST" in environ and context is None:
        return load_service_account(service_account, environ)
    return load_kubeconfig([Path("~/.kube/config").expanduser()], context, environ)


def _has_content(path: Path) -> bool:
    """Whether there is something in a file: of several, kubectl passes over those that are missing or empty."""
    try:
        return path.stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # something that cannot be read, as will be said when it is
