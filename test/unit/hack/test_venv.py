"""`hack/venv` on machines that lack something: one sentence, and nothing half made."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import lock

SCRIPT = lock.ROOT / "hack" / "venv"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "hack").mkdir()
    return Path(shutil.copy(SCRIPT, tmp_path / "hack" / "venv"))


def program(folder: Path, name: str, *, exit_code: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


def run(script: Path, **environment: str) -> tuple[int, str]:
    base = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    done = subprocess.run([script], env={**base, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()[-1]


def test_a_python_that_is_not_there_should_be_one_sentence(script: Path) -> None:
    code, words = run(script, PYTHON="python9")
    assert (code, words) == (
        1,
        "error: PYTHON=python9 is not a program on this machine: name a Python 3.11 or newer.",
    )


def test_a_python_that_is_too_old_should_be_one_sentence(script: Path, tmp_path: Path) -> None:
    old = program(tmp_path / "bin", "oldpython", exit_code=1)
    code, words = run(script, PYTHON=str(old))
    assert code == 1
    assert words == f"error: PYTHON={old} is not a Python 3.11 or newer: install one, or name another with PYTHON=…"


def test_no_python_at_all_should_be_one_sentence(script: Path, tmp_path: Path) -> None:
    for name in ("bash", "dirname", "env"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    code, words = run(script, PATH=str(tmp_path / "bin"))
    assert (code, words) == (1, "error: no Python 3.11 or newer was found: install one, or name it with PYTHON=…")


def test_a_python_without_venv_should_be_one_sentence_and_leave_nothing(script: Path, tmp_path: Path) -> None:
    # Says yes to the version check, and no to everything that follows.
    odd = program(tmp_path / "bin", "oddpython", exit_code=0)
    odd.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\nmkdir -p .venv\nexit 1\n')
    code, words = run(script, PYTHON=str(odd))
    assert code == 1
    assert words.endswith("cannot make a virtual environment: install its venv module (Debian: python3-venv).")
    assert not (tmp_path / ".venv").exists()
