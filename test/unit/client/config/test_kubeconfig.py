import base64
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from ktrainer.client.config.config import Authorization, ConfigError, ExecPlugin, Material, TlsConfig, TokenFile
from ktrainer.client.config.kubeconfig import load_kubeconfig

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "interactiveMode": "Never"}


def document(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    current: object = "here",
    **changes: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    } | changes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file.pem").write_text("from a file")
    return tmp_path / "config"


def load(path: Path, content: object, context: str | None = None, environ: dict[str, str] | None = None) -> Any:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return load_kubeconfig([path], context, environ or {})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_should_be_used(path: Path) -> None:
    config = load(path, document())
    assert (config.server, config.namespace, config.credentials, config.proxy) == ("https://api:6443", "ns", None, "")
    assert config.tls == TlsConfig()


def test_another_context_may_be_asked_for(path: Path) -> None:
    content = document(
        contexts=[{"name": "there", "context": {"cluster": "d"}}],
        clusters=[{"name": "d", "cluster": {"server": "http://127.0.0.1:8080"}}],
        users=None,
    )
    config = load(path, content, "there")
    assert (config.server, config.namespace) == ("http://127.0.0.1:8080", "default")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, Authorization("Bearer abc")),
        ({"username": "me", "password": "é:"}, Authorization("Basic " + encoded("me:é:"))),
        ({"token": "abc", "username": "me", "exec": EXEC}, Authorization("Bearer abc")),
    ],
)
def test_fixed_credentials_should_be_read(path: Path, user: dict[str, Any], expected: Authorization) -> None:
    assert load(path, document(user=user)).credentials == expected


def test_a_token_file_should_be_found_beside_the_kubeconfig_and_win(path: Path) -> None:
    config = load(path, document(user={"token": "abc", "tokenFile": "file.pem"}))
    assert config.credentials == TokenFile(path.parent / "file.pem")


def test_certificates_should_be_read_from_files_or_from_the_kubeconfig_itself(path: Path) -> None:
    cluster = {"certificate-authority": "file.pem"}
    user = {"client-certificate": str(path.parent / "file.pem"), "client-key": "file.pem"}
    file = Material(path=path.parent / "file.pem")
    tls = load(path, document(cluster=cluster, user=user)).tls
    assert tls == TlsConfig(file, file, file)
    assert tls.authorities.read() == b"from a file"
    cluster["certificate-authority-data"] = encoded("ca")
    user |= {
        "client-certificate-data": encoded("crt")[:4] + "\n" + encoded("crt")[4:],
        "client-key-data": encoded("key"),
    }
    tls = load(path, document(cluster=cluster, user=user)).tls
    assert tls == TlsConfig(Material(data=b"ca"), Material(data=b"crt"), Material(data=b"key"))


def test_certificates_should_know_the_setting_that_they_come_from(path: Path) -> None:
    user = {"client-certificate-data": encoded("crt"), "client-key": "file.pem"}
    tls = load(path, document(user=user)).tls
    assert str(tls.certificate.error("bad")) == f"{path}: users[u].user.client-certificate-data: bad"
    assert str(tls.key.error("bad")) == f"{path}: users[u].user.client-key: {path.parent / 'file.pem'}: bad"


def test_the_other_settings_of_a_cluster_should_be_read(path: Path) -> None:
    cluster = {"tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128", "disable-compression": True}
    config = load(path, document(cluster=cluster), environ={"HTTPS_PROXY": "http://other"})
    assert (config.tls.server_name, config.proxy) == ("kubernetes", "http://proxy:3128")
    assert load(path, document(), environ={"HTTPS_PROXY": "other"}).proxy == "http://other"


def test_a_server_that_is_not_verified_should_be_warned_about(path: Path) -> None:
    with capture_logs() as logs:
        assert load(path, document(cluster={"insecure-skip-tls-verify": True})).tls.insecure
    assert [each["log_level"] for each in logs] == ["warning"]


def test_a_plugin_should_be_read(path: Path) -> None:
    settings = EXEC | {
        "args": ["get", "--token"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it\n",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {
        "certificate-authority": "file.pem",
        "tls-server-name": "kubernetes",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    assert load(path, document(cluster=cluster, user={"exec": settings})).credentials == ExecPlugin(
        source=f"{path}: users[u].user.exec",
        api_version="client.authentication.k8s.io/v1",
        command=sys.executable,
        arguments=("get", "--token"),
        environment={"A": "b"},
        install_hint="get it",
        cluster={
            "server": "https://api:6443/",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": encoded("from a file"),
            "config": {"audience": "x"},
        },
    )


def test_a_plugin_may_be_named_by_a_path_relative_to_the_kubeconfig(path: Path) -> None:
    program = path.parent / "bin" / "plugin"
    program.parent.mkdir()
    program.symlink_to("/bin/true")
    settings = EXEC | {"command": "bin/plugin", "args": None, "env": None}
    plugin = load(path, document(user={"exec": settings})).credentials
    assert (plugin.command, plugin.cluster) == (str(program), None)
    assert load(path, document(user={"exec": EXEC | {"command": "sh"}})).credentials.command == "sh"


def test_of_several_files_the_first_that_says_something_should_win(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "first", tmp_path / "b" / "second"
    for file in (first, second):
        file.parent.mkdir()
        (file.parent / "ca.pem").write_text("")
    one = document(clusters=None)
    one["users"][0]["user"] = {"token": "first"}
    two = document(cluster={"certificate-authority": "ca.pem"}, user={"token": "second"})
    two["current-context"] = "elsewhere"
    first.write_text(yaml.safe_dump(one))
    second.write_text(yaml.safe_dump(two))
    config = load_kubeconfig([first, second], None, {})
    assert config.credentials == Authorization("Bearer first")
    assert config.tls.authorities == Material(path=second.parent / "ca.pem")


def test_null_should_be_as_good_as_absent(path: Path) -> None:
    empty = dict.fromkeys(["certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name", "proxy-url"])
    user = {
        "client-certificate-data": None,
        "token": None,
        "auth-provider": None,
        "exec": EXEC | {"env": [{"name": "A", "value": None}], "installHint": None, "provideClusterInfo": None},
    }
    content = document(cluster=empty | {"extensions": None}, user=user)
    content["contexts"][0]["context"]["namespace"] = None
    config = load(path, content)
    assert (config.namespace, config.tls, config.credentials.environment) == ("default", TlsConfig(), {"A": ""})
    content = document(users=[{"name": "u", "user": None}], current=None)
    assert load(path, content, "here").credentials is None


def test_what_a_plugin_is_told_should_be_as_it_is_in_the_file(path: Path) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": None}}
    config = load(
        path, document(cluster={"extensions": [extension]}, user={"exec": EXEC | {"provideClusterInfo": True}})
    )
    assert config.credentials.cluster["config"] == {"audience": None}


@pytest.mark.parametrize("odd", [None, 3, {"token": 12}, {"cluster": ["x"]}, {"exec": {"command": "aws"}}])
def test_what_is_not_used_may_be_odd(path: Path, odd: object) -> None:
    content = document()
    for kind in ("context", "cluster", "user"):
        content[f"{kind}s"].insert(0, {"name": "old", kind: odd})
    assert load(path, content).server == "https://api:6443"


def test_what_is_used_should_be_named_by_its_place_whatever_goes_before_it(path: Path) -> None:
    content = document(user={"token": 12})
    content["users"].insert(0, {"name": "old", "user": 3})
    with pytest.raises(ConfigError) as caught:
        load(path, content)
    assert caught.value.field == "users[1].user.token"


@pytest.mark.parametrize("text", ["2026-01-02", "2026-99-99", "2026-01-02T03:04:05Z", "12:30", "1:20.5", "=", "<<"])
def test_what_kubectl_takes_for_text_should_be_text(path: Path, text: str) -> None:
    content = yaml.safe_dump(document(current="NAME")).replace("here", "NAME").replace(": ns", ": NAME")
    config = load(path, content.replace("NAME", text))
    assert config.namespace == text


def test_parts_should_be_merged(path: Path) -> None:
    content = yaml.safe_dump(document(user={"token": "x"})).replace("token: x", "{<<: {token: x}}")
    assert load(path, content).credentials == Authorization("Bearer x")


def test_a_document_without_end_should_not_be_followed(path: Path) -> None:
    config = load(path, yaml.safe_dump(document(user={"token": "x"})) + "more: &more {again: *more}\n")
    assert config.credentials == Authorization("Bearer x")


@pytest.mark.parametrize(
    ("content", "field", "message"),
    [
        pytest.param("", "", "empty", id="empty"),
        pytest.param("# nothing\n", "", "empty", id="comment"),
        pytest.param("just text", "", "Expected `object`, got `str`", id="text"),
        pytest.param("[]", "", "Expected `object`, got `array`", id="list"),
        pytest.param("a: 'secret\nb", "line 2", "not YAML", id="not yaml"),
        pytest.param("a: \x00", "", "not YAML", id="binary"),
        pytest.param("a: !!int secret", "", "not YAML", id="odd tag"),
        pytest.param("a: !!bool secret", "", "not YAML", id="odd boolean"),
        pytest.param("a: !!int ''", "", "not YAML", id="empty number"),
        pytest.param("[" * 5000, "", "not YAML", id="deep"),
        pytest.param(document(current=""), "current-context", "not set", id="no current context"),
        pytest.param(document(current=1), "current-context", "Expected `str`", id="odd context"),
        pytest.param(document(contexts=None), "current-context", "no context 'here'", id="no such context"),
        pytest.param(document(clusters=None), "contexts[here].context.cluster", "no cluster 'c'", id="no such cluster"),
        pytest.param(document(users=[]), "contexts[here].context.user", "no user 'u'", id="no such user"),
        pytest.param(document(clusters={"c": {}}), "clusters", "Expected `array", id="clusters of the wrong type"),
        pytest.param(document(clusters=[3]), "clusters[0]", "Expected `object`", id="cluster of the wrong type"),
        pytest.param(
            document(clusters=[{"cluster": {}}]), "clusters[0]", "missing required field `name`", id="no name"
        ),
        pytest.param(
            document(clusters=[{"name": "c", "cluster": None}]), "clusters[0].cluster", "got `null`", id="null"
        ),
        pytest.param(
            document(user={"token": 12}), "users[0].user.token", "Expected `str`, got `int`", id="token of digits"
        ),
        pytest.param(
            document(user={"client-key": ["secret"]}), "users[0].user.client-key", "Expected `str`", id="odd key"
        ),
    ],
)
def test_garbage_should_be_named(path: Path, content: object, field: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(path, content)
    assert caught.value.path == str(path)
    assert caught.value.field == field
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"server": ""}, "server", "not a URL"),
        ({"server": "api:6443"}, "server", "not a URL"),
        ({"server": "ftp://api"}, "server", "not a URL"),
        ({"server": "https://"}, "server", "not a URL"),
        ({"server": "https://api:none"}, "server", "not a URL"),
        ({"server": "https://api:99999"}, "server", "not a URL"),
        ({"server": "https://me:secret@api"}, "server", "not a URL"),
        ({"server": "https://[::1"}, "server", "not a URL"),
        ({"server": "https://api..example"}, "server", "not a URL"),
        ({"server": "https://api\n"}, "server", "not a URL"),
        ({"server": "https://api#part"}, "server", "not a URL"),
        ({"tls-server-name": ".api"}, "tls-server-name", "not the name of a host"),
        ({"tls-server-name": "a\0"}, "tls-server-name", "not the name of a host"),
        ({"certificate-authority": "a\0"}, "certificate-authority", "not a path"),
        ({"certificate-authority": "none.pem"}, "certificate-authority", "none.pem: No such file"),
        ({"certificate-authority-data": "!secret"}, "certificate-authority-data", "not base64"),
        (
            {"certificate-authority": "file.pem", "insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify",
            "makes no sense",
        ),
        ({"proxy-url": "socks5://proxy"}, "proxy-url", "only http"),
        ({"proxy-url": "http://me:secret@[::1"}, "proxy-url", "not a URL"),
        ({"proxy-url": "http://me:secret@proxy:none"}, "proxy-url", "not a URL"),
        ({"proxy-url": "http://"}, "proxy-url", "not a URL"),
    ],
)
def test_a_field_of_a_cluster_that_cannot_be_used_should_be_named(
    path: Path, changes: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(path, document(cluster=changes))
    assert caught.value.field == f"clusters[c].cluster.{field}"
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "field", "message"),
    [
        ({"client-certificate-data": "YQ=="}, "client-certificate", "need each other"),
        ({"client-key-data": "YQ=="}, "client-certificate", "need each other"),
        ({"client-certificate-data": "YQ==", "client-key-data": "secret!"}, "client-key-data", "not base64"),
        ({"client-certificate": "none.pem", "client-key": "file.pem"}, "client-certificate", "No such file"),
        ({"token": "a\nsecret: b"}, "token", "not a token"),
        ({"tokenFile": "none"}, "tokenFile", "No such file"),
        ({"as": "somebody", "token": "x"}, "as", "not supported"),
        ({"auth-provider": {"name": "oidc"}}, "auth-provider", "exec plugin"),
        ({"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "exec.apiVersion", "not one of"),
        ({"exec": EXEC | {"interactiveMode": "Always"}}, "exec.interactiveMode", "terminal"),
        ({"exec": EXEC | {"command": "no-such-program"}}, "exec.command", "'no-such-program'"),
        ({"exec": EXEC | {"command": "./none", "installHint": "get it"}}, "exec.command", "/none'; get it"),
    ],
)
def test_a_field_of_a_user_that_cannot_be_used_should_be_named(
    path: Path, user: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(path, document(user=user))
    assert caught.value.field == f"users[u].user.{field}"
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_context_that_is_asked_for_should_be_named_when_it_is_missing(path: Path) -> None:
    with pytest.raises(ConfigError, match="no context 'there'") as caught:
        load(path, document(), "there")
    assert caught.value.field == "contexts"


def test_text_that_is_not_utf8_should_be_named(path: Path) -> None:
    path.write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match="byte 3"):
        load_kubeconfig([path], None, {})


def test_a_file_that_cannot_be_read_should_be_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        load_kubeconfig([path], None, {})
