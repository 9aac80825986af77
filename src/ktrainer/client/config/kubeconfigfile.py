"""The format of kubeconfig files, as far as we read it, and the reading of one file.

As kubectl does, null is taken for absent, and entries that nobody uses may hold anything: only what is chosen is read
in full. Messages never quote what is in the file: it holds secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml

from ktrainer.client.config.config import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")

_FILE_LEVELS = 3
"""The levels of a file down to its entries: itself, a list, an entry."""

_SECTION_LEVELS = 4
"""The levels of what an entry holds, of which the deepest are the variables of a plugin."""


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
    value: str = ""


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
    cluster: Any = None
    """A Cluster, to be read by `read_section`."""


class NamedUser(msgspec.Struct, frozen=True):
    """An entry of `users`."""

    name: str
    user: Any = {}
    """A User, to be read by `read_section`."""


class NamedContext(msgspec.Struct, frozen=True):
    """An entry of `contexts`."""

    name: str
    context: Any = None
    """A Context, to be read by `read_section`."""


class Kubeconfig(msgspec.Struct, rename="kebab", frozen=True):
    """A whole file; kubectl writes null for a list that is empty."""

    current_context: str = ""
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


class _Loader(yaml.SafeLoader):
    """Takes for text what only PyYAML takes for something else, and kubectl does not: dates, times of day, signs."""

    def construct_text(self, node: yaml.ScalarNode) -> str:
        """The text as it stands there."""
        return str(self.construct_scalar(node))

    def construct_integer(self, node: yaml.ScalarNode) -> int | str:
        """A number, unless it is one to the base of sixty."""
        return self.construct_text(node) if ":" in node.value else self.construct_yaml_int(node)

    def construct_number(self, node: yaml.ScalarNode) -> float | str:
        """A number, unless it is one to the base of sixty."""
        return self.construct_text(node) if ":" in node.value else self.construct_yaml_float(node)


for _tag in ("timestamp", "value", "merge"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _Loader.construct_text)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Read one file but for what its entries hold; raises ConfigError with the field that is wrong."""
    try:
        document = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "", f"not UTF-8 at byte {error.start}") from None
    except yaml.YAMLError as error:
        # The text of the error itself has an excerpt of the file.
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else ""
        raise ConfigError(str(path), line, f"not YAML: {getattr(error, 'problem', None) or 'unreadable'}") from None
    except (ValueError, LookupError, RecursionError):
        # What a tag says it is, and is not; or nesting without end.
        raise ConfigError(str(path), "", "not YAML: unreadable") from None
    if document is None:
        raise ConfigError(str(path), "", "the file is empty")
    return _converted(path, "", _without_nulls(document, _FILE_LEVELS), Kubeconfig)


def read_section(path: Path, field: str, content: object, kind: type[_T]) -> _T:
    """Read what an entry at `field` holds; raises ConfigError with the field that is wrong."""
    return _converted(path, field, _without_nulls(content, _SECTION_LEVELS), kind)


def _converted(path: Path, field: str, content: object, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise ConfigError(str(path), f"{field}{place.rstrip('`')}".removeprefix("."), message) from None


def _without_nulls(value: object, levels: int) -> object:
    """A value without nulls in so many levels of it; extensions are not ours to change."""
    if levels == 0:
        return value
    if isinstance(value, dict):
        return {
            name: each if name == "extensions" else _without_nulls(each, levels - 1)
            for name, each in value.items()
            if each is not None
        }
    return [_without_nulls(each, levels - 1) for each in value] if isinstance(value, list) else value
