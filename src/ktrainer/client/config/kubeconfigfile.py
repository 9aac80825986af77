"""The format of kubeconfig files, as far as we read it, and the reading of one file.

Messages never quote what is in the file: it holds secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from ktrainer.client.config.config import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


class Cluster(msgspec.Struct, rename="kebab", frozen=True):
    """An API server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class EnvironmentVariable(msgspec.Struct, frozen=True):
    """One variable for a plugin."""

    name: str
    value: str


class Exec(msgspec.Struct, rename="camel", frozen=True):
    """A plugin for credentials."""

    api_version: str
    command: str
    args: list[str] | None = None
    env: list[EnvironmentVariable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, rename="kebab", frozen=True):
    """An identity."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = msgspec.field(default="", name="as")


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace that belong together."""

    cluster: str
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster


class NamedUser(msgspec.Struct, frozen=True):
    """An entry of `users`."""

    name: str
    user: User


class NamedContext(msgspec.Struct, frozen=True):
    """An entry of `contexts`."""

    name: str
    context: Context


class Kubeconfig(msgspec.Struct, rename="kebab", frozen=True):
    """A whole file; kubectl writes null for a list that is empty."""

    current_context: str = ""
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Read one file; raises ConfigError with the field that is wrong."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "", f"not UTF-8 at byte {error.start}") from None
    except yaml.YAMLError as error:
        # The text of the error itself has an excerpt of the file.
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else ""
        raise ConfigError(str(path), line, f"not YAML: {getattr(error, 'problem', None) or 'unreadable'}") from None
    if document is None:
        raise ConfigError(str(path), "", "the file is empty")
    try:
        return msgspec.convert(document, Kubeconfig)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise ConfigError(str(path), place.rstrip("`").removeprefix("."), message) from None
