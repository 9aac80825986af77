import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ktrainer.cli.main import main

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    # Nobody answers there.
    "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "it", "user": {}}],
    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    "current-context": "it",
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    return path


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "configuration.yaml"
    path.write_text("health: {healthProbeBindAddress: '0'}\nmetrics: {bindAddress: '0'}\n")
    return path


@pytest.mark.parametrize("command", ["manager", "webhook"])
def test_help_should_teach_the_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--config", "--kubeconfig", "--context", "--feature-gates", "--log-level", "--log-format"):
        assert flag in text
    assert ("--no-webhook" in text.partition("options:")[2]) is (command == "manager")


def test_all_mistakes_in_the_configuration_should_be_told_with_their_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("webhook: {port: 0}\nhealth: {wrong: 1}\n")
    assert main(["manager", f"--config={file}"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"ktrainer: {file}: webhook.port: ")
    assert lines[1].startswith(f"ktrainer: {file}: health.wrong: ")


def test_a_missing_file_should_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["webhook", f"--config={tmp_path}/none"]) == 2
    assert capsys.readouterr().err == f"ktrainer: {tmp_path}/none: No such file or directory\n"


def test_unknown_gates_should_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manager", "--feature-gates=Wrong=true,Other=true"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition('"')[0] for line in lines] == ["ktrainer: --feature-gates: Unsupported value: "] * 2


def test_a_kubeconfig_that_cannot_be_used_should_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manager", f"--kubeconfig={tmp_path}/none"]) == 2
    assert f"{tmp_path}/none" in capsys.readouterr().err


def test_an_unknown_context_should_be_told(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manager", f"--kubeconfig={kubeconfig}", "--context=other"]) == 2
    assert "other" in capsys.readouterr().err


def run(*arguments: str, until: str) -> tuple[int, list[str]]:
    """Run the program until a line of its log holds a text, and then ask it to stop; its code, and its log."""
    command = [sys.executable, "-m", "ktrainer", *arguments]
    lines: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        for line in program.stderr:
            lines.append(line)
            if until in line:
                program.send_signal(signal.SIGTERM)
                until = "\0"
    return program.returncode, lines


def test_an_unreachable_cluster_should_be_told_and_tried_again_until_the_program_is_stopped(
    kubeconfig: Path, configuration: Path
) -> None:
    code, lines = run(
        "manager", f"--kubeconfig={kubeconfig}", f"--config={configuration}", until="cannot list or watch; trying again"
    )
    assert code == 0
    assert '"event":"stopped"' in lines[-1]


def test_a_plugin_that_does_not_exist_should_be_told(kubeconfig: Path, configuration: Path) -> None:
    configuration.write_text(configuration.read_text() + "plugins: {disabled: [wrong]}\n")
    code, lines = run("manager", f"--kubeconfig={kubeconfig}", f"--config={configuration}", until="\0")
    assert code == 2
    assert lines[-1].startswith("ktrainer: plugins.disabled: there is no plugin wrong")


def test_an_address_that_is_taken_should_be_a_fault(kubeconfig: Path, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        file = tmp_path / "taken.yaml"
        file.write_text(f"health: {{healthProbeBindAddress: '127.0.0.1:{port}'}}\nmetrics: {{bindAddress: '0'}}\n")
        code, lines = run("manager", f"--kubeconfig={kubeconfig}", f"--config={file}", until="\0")
    assert code == 1
    assert "the program ends because of a fault" in lines[-1]
