"""Files that are generated: written anew, or only checked to be what would be written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_check(file: Path, wanted: str, name: str, arguments: list[str]) -> int:
    """Write the file, or with `--check` say where it differs; the exit code is 1 when the check fails."""
    if arguments == ["--check"]:
        if file.exists() and file.read_text() == wanted:
            return 0
        print(f"{name} is stale: run `make generate`", file=sys.stderr)
        return 1
    file.write_text(wanted)
    return 0


def write_or_check_folder(folder: Path, wanted: dict[str, str], name: str, arguments: list[str], kept: str = "") -> int:
    """The same for the YAML files of a folder by their names; others are removed, but for the one that is `kept`."""
    present = [path for path in folder.glob("*.yaml") if path.name != kept]
    if arguments == ["--check"]:
        if {path.name: path.read_text() for path in present} == wanted:
            return 0
        print(f"{name} is stale: run `make generate`", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for path in present:
        path.unlink()
    for file, text in wanted.items():
        (folder / file).write_text(text)
    return 0
