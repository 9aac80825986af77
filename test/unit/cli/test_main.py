import io
import subprocess
import sys

import pytest

from ktrainer import __version__
from ktrainer.cli.main import main


def test_version_command_should_print_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"ktrainer {__version__}\n"


def test_a_version_that_cannot_be_written_should_be_told() -> None:
    command = [sys.executable, "-m", "ktrainer", "version"]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "ktrainer: the output cannot be written: No space left on device\n"


def test_version_option_should_print_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"ktrainer {__version__}\n"


def test_a_missing_command_should_be_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


class Interrupted(io.StringIO):
    """An input at which somebody gives up."""

    def read(self, size: int | None = -1, /) -> str:
        raise KeyboardInterrupt


def test_ctrl_c_should_end_a_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Interrupted())
    assert main(["validate", "--offline", "-f", "-"]) == 130
    assert capsys.readouterr().err == ""


def test_the_module_should_be_the_same_program() -> None:
    run = subprocess.run([sys.executable, "-m", "ktrainer", "version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"ktrainer {__version__}\n"
