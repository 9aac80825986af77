from pathlib import Path

import pytest

from ktrainer.client.config.config import (
    Authorization,
    ConfigError,
    ConnectionConfig,
    ExecPlugin,
    Material,
    TlsConfig,
    TokenFile,
    load_config,
)

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def kubeconfig(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "current-context: here\n"
        "contexts: [{name: here, context: {cluster: c}}, {name: there, context: {cluster: c, namespace: there}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
    )
    return path


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name in ("token", "ca.crt", "namespace"):
        (folder / name).write_text(f"the {name}\n")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_given_kubeconfig_should_win(tmp_path: Path, account: Path) -> None:
    given = kubeconfig(tmp_path / "given", "http://given")
    named = kubeconfig(tmp_path / "named", "http://named")
    environ = POD | {"KUBECONFIG": str(named)}
    assert load_config(given, None, environ=environ, service_account=account).server == "http://given"
    assert load_config(None, None, environ=environ, service_account=account).server == "http://named"


def test_a_pod_should_use_its_service_account(account: Path, home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "http://home")
    assert load_config(None, None, environ=POD, service_account=account) == ConnectionConfig(
        server="https://10.0.0.1:443",
        tls=TlsConfig(authorities=Material(path=account / "ca.crt")),
        credentials=TokenFile(account / "token"),
        namespace="the namespace",
    )
    assert load_config(None, "there", environ=POD, service_account=account).namespace == "there"


def test_the_kubeconfig_of_the_user_should_come_last(home: Path) -> None:
    kubeconfig(home / ".kube" / "config", "http://home")
    assert load_config(None, None, environ={}).server == "http://home"
    assert load_config(None, None, environ={"KUBECONFIG": ""}).server == "http://home"


def test_files_that_are_missing_should_matter_only_when_all_are(tmp_path: Path, home: Path) -> None:
    there = kubeconfig(tmp_path / "there", "http://there")
    missing = tmp_path / "missing"
    empty = tmp_path / "empty"
    empty.touch()
    beyond = there / "beyond"
    environ = {"KUBECONFIG": f"{missing}::{empty}:{beyond}:{there}"}
    assert load_config(None, None, environ=environ).server == "http://there"
    with pytest.raises(ConfigError, match="is empty"):
        load_config(None, None, environ={"KUBECONFIG": str(empty)})
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="symbolic links"):
        load_config(None, None, environ={"KUBECONFIG": f"{there}:{loop}"})
    for kubeconfig_path, environ in ((missing, {}), (None, {"KUBECONFIG": str(missing)}), (None, {})):
        with pytest.raises(ConfigError, match="No such file") as caught:
            load_config(kubeconfig_path, None, environ=environ)
        assert caught.value.path in {str(missing), str(home / ".kube" / "config")}


@pytest.mark.parametrize(
    ("environ", "field"),
    [
        ({"KUBERNETES_SERVICE_HOST": ""}, "KUBERNETES_SERVICE_HOST"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "KUBERNETES_SERVICE_PORT"),
        (POD | {"KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:443"}, "KUBERNETES_SERVICE_PORT"),
        (POD | {"KUBERNETES_SERVICE_PORT": "99999"}, "KUBERNETES_SERVICE_HOST"),
    ],
)
def test_a_pod_without_a_server_should_say_what_is_missing(account: Path, environ: dict[str, str], field: str) -> None:
    with pytest.raises(ConfigError, match="environment") as caught:
        load_config(None, None, environ=environ, service_account=account)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_a_pod_without_credentials_should_say_what_is_missing(account: Path, name: str) -> None:
    (account / name).write_text(" \n")
    with pytest.raises(ConfigError, match="empty") as caught:
        load_config(None, None, environ=POD, service_account=account)
    assert caught.value.path == str(account / name)
    (account / name).unlink()
    with pytest.raises(ConfigError, match="No such file"):
        load_config(None, None, environ=POD, service_account=account)


def test_a_pod_without_a_namespace_should_use_the_default(account: Path) -> None:
    (account / "namespace").unlink()
    assert load_config(None, None, environ=POD, service_account=account).namespace == "default"


def test_an_address_of_version_six_should_be_bracketed(account: Path) -> None:
    environ = POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert load_config(None, None, environ=environ, service_account=account).server == "https://[fd00::1]:443"


def test_a_pod_should_use_the_proxy_of_its_environment(account: Path) -> None:
    environ = POD | {"HTTPS_PROXY": "http://proxy:3128"}
    assert load_config(None, None, environ=environ, service_account=account).proxy == "http://proxy:3128"
    environ["NO_PROXY"] = "10.0.0.0/8"
    assert load_config(None, None, environ=environ, service_account=account).proxy == ""


def test_secrets_should_not_show() -> None:
    tls = TlsConfig(key=Material(data=b"secret-key"))
    plugin = ExecPlugin("here", "v1", "get", environment={"PASSWORD": "secret-word"})
    for credentials in (Authorization("Bearer secret-token"), plugin):
        assert "secret" not in repr(ConnectionConfig("https://x", tls, credentials))
    assert str(Material(data=b"secret-key")) == "embedded data"
    assert str(Material(path=Path("/x"))) == "/x"
