"""Finds the connection that kubeconfig files describe, and says which field is wrong when there is none.

Of several files the first that names a cluster, user, context or current context wins, as with kubectl. Paths inside a
file are relative to it.
"""

from __future__ import annotations

import base64
import binascii
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import structlog

from ktrainer.client.config.config import (
    Authorization,
    ConfigError,
    ConnectionConfig,
    ExecPlugin,
    Material,
    TlsConfig,
    TokenFile,
)
from ktrainer.client.config.kubeconfigfile import Cluster, Context, User, read_kubeconfig, read_section
from ktrainer.client.config.proxy import find_proxy_problem, proxy_of
from ktrainer.client.config.urls import is_host, is_url
from ktrainer.client.credentials.credentials import bearer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ktrainer.client.config.config import CredentialSource
    from ktrainer.client.config.kubeconfigfile import Exec

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Place:
    """An entry of a file: where its paths start, and what its errors say."""

    file: Path
    entry: str

    def error(self, name: str, message: str) -> ConfigError:
        return ConfigError(str(self.file), f"{self.entry}.{name}" if self.entry else name, message)

    def material(self, name: str, file: str, data: str) -> Material | None:
        """What a pair of fields, `name` and `name-data`, holds; the data wins."""
        if data:
            try:
                decoded = base64.b64decode("".join(data.split()), validate=True)
            except (binascii.Error, ValueError):
                raise self.error(f"{name}-data", "not base64") from None
            return Material(data=decoded, setting=(str(self.file), f"{self.entry}.{name}-data"))
        return Material(self.existing(name, file), setting=(str(self.file), f"{self.entry}.{name}")) if file else None

    def existing(self, name: str, file: str) -> Path:
        """The path of a file that the field names, and that can be read."""
        path = self.file.parent / file
        try:
            path.open("rb").close()
        except OSError as error:
            raise self.error(name, f"{path}: {error.strerror or error}") from error
        except ValueError:
            raise self.error(name, "not a path") from None
        return path


def load_kubeconfig(paths: Sequence[Path], context: str | None, environ: Mapping[str, str]) -> ConnectionConfig:
    """Read the files and take what the context, or else their current one, names; raises ConfigError."""
    files = [(path.absolute(), read_kubeconfig(path)) for path in paths]
    asked = _Place(files[0][0], "")
    wanted = context or next((file.current_context for _, file in files if file.current_context), "")
    if not wanted:
        raise asked.error("current-context", "not set, and no context is asked for")
    contexts = [(path, [(each.name, each.context) for each in file.contexts or ()]) for path, file in files]
    clusters = [(path, [(each.name, each.cluster) for each in file.clusters or ()]) for path, file in files]
    users = [(path, [(each.name, each.user) for each in file.users or ()]) for path, file in files]
    place, chosen = _find("context", wanted, contexts, Context) or _missing(
        asked, "contexts" if context else "current-context", "context", wanted
    )
    cluster_place, cluster = _find("cluster", chosen.cluster, clusters, Cluster) or _missing(
        place, "cluster", "cluster", chosen.cluster
    )
    user_place, user = (
        _find("user", chosen.user, users, User) or _missing(place, "user", "user", chosen.user)
        if chosen.user
        else (place, User())
    )
    return ConnectionConfig(
        server=_server_of(cluster_place, cluster),
        tls=_tls_of(cluster_place, cluster, user_place, user),
        credentials=_credentials_of(user_place, user, cluster),
        proxy=_proxy_of(cluster_place, cluster, environ),
        namespace=chosen.namespace or "default",
    )


def _find(
    kind: str, name: str, files: Iterable[tuple[Path, list[tuple[str, object]]]], form: type[_T]
) -> tuple[_Place, _T] | None:
    """Read the first entry of that name; `files` are lists of names and what they stand for."""
    for path, entries in files:
        for number, (each, content) in enumerate(entries):
            if each == name:
                value = read_section(path, f"{kind}s[{number}].{kind}", content, form)
                return _Place(path, f"{kind}s[{name}].{kind}"), value
    return None


def _missing(place: _Place, field: str, kind: str, name: str) -> tuple[_Place, _T]:
    raise place.error(field, f"there is no {kind} {name!r}")


def _server_of(place: _Place, cluster: Cluster) -> str:
    if not _is_server(cluster.server):
        raise place.error("server", "not a URL of the form https://host:port")
    return cluster.server.rstrip("/")


def _is_server(text: str) -> bool:
    return is_url(text) and not urlsplit(text).username


def _tls_of(place: _Place, cluster: Cluster, user_place: _Place, user: User) -> TlsConfig:
    authorities = place.material(
        "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    if cluster.insecure_skip_tls_verify:
        if authorities is not None:
            raise place.error("insecure-skip-tls-verify", "makes no sense together with a certificate-authority")
        _log.warning("the API server's certificate is not verified", server=cluster.server)
    certificate = user_place.material("client-certificate", user.client_certificate, user.client_certificate_data)
    key = user_place.material("client-key", user.client_key, user.client_key_data)
    if (certificate is None) != (key is None):
        raise user_place.error("client-certificate", "a client-certificate and a client-key need each other")
    if cluster.tls_server_name and not is_host(cluster.tls_server_name):
        raise place.error("tls-server-name", "not the name of a host")
    return TlsConfig(authorities, certificate, key, cluster.tls_server_name, cluster.insecure_skip_tls_verify)


def _credentials_of(place: _Place, user: User, cluster: Cluster) -> CredentialSource:
    if user.impersonate:
        raise place.error("as", "impersonation is not supported")
    if user.token_file:
        return TokenFile(place.existing("tokenFile", user.token_file))
    if user.token:
        try:
            return Authorization(bearer_of(user.token))
        except ValueError:
            raise place.error("token", "not a token: it has spaces or other characters that cannot be sent") from None
    if user.username:
        return Authorization("Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode())
    if user.exec is not None:
        return _exec_of(place, user.exec, cluster)
    if user.auth_provider is not None:
        raise place.error("auth-provider", "not supported: use an exec plugin instead")
    return None


def _exec_of(place: _Place, settings: Exec, cluster: Cluster) -> ExecPlugin:
    if settings.api_version not in _EXEC_VERSIONS:
        raise place.error("exec.apiVersion", f"not one of {', '.join(_EXEC_VERSIONS)}")
    if settings.interactive_mode == "Always":
        raise place.error("exec.interactiveMode", "there is no terminal for a plugin that needs one")
    command = str(place.file.parent / settings.command) if "/" in settings.command else settings.command
    if shutil.which(command) is None:
        hint = f"; {settings.install_hint.strip()}" if settings.install_hint else ""
        raise place.error("exec.command", f"there is no program {command!r}{hint}")
    return ExecPlugin(
        source=f"{place.file}: {place.entry}.exec",
        api_version=settings.api_version,
        command=command,
        arguments=tuple(settings.args or ()),
        environment={each.name: each.value for each in settings.env or ()},
        install_hint=settings.install_hint.strip(),
        cluster=_cluster_info_of(place, cluster) if settings.provide_cluster_info else None,
    )


def _cluster_info_of(place: _Place, cluster: Cluster) -> dict[str, object]:
    """The cluster as a plugin is told about it."""
    authorities = place.material(
        "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    info: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authorities.read()).decode() if authorities else "",
        "proxy-url": cluster.proxy_url,
        "config": next(
            (each.get("extension") for each in cluster.extensions or () if each.get("name") == _EXEC_EXTENSION), None
        ),
    }
    return {name: value for name, value in info.items() if value}


def _proxy_of(place: _Place, cluster: Cluster, environ: Mapping[str, str]) -> str:
    if not cluster.proxy_url:
        return proxy_of(cluster.server, environ)
    if problem := find_proxy_problem(cluster.proxy_url):
        raise place.error("proxy-url", problem)
    return cluster.proxy_url
