"""What is released can be built again, byte by byte."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lock import ROOT


def build(folder: Path, when: int) -> str:
    """Build the wheel from a copy of the sources whose files were changed at that time; return its digest."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*"):
        os.utime(path, (when, when))
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=folder, check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_the_same_sources_should_make_the_same_wheel(tmp_path: Path) -> None:
    assert build(tmp_path / "first", 1_700_000_000) == build(tmp_path / "second", 1_800_000_000)
