"""Files that are generated: written anew, or only checked to be what would be written."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def is_check(arguments: list[str], description: str) -> bool:
    """Whether to check only; ends the program where it is asked for help, or for anything else."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing, and exit with 1 where something is wrong")
    check: bool = parser.parse_args(arguments).check
    return check


def write_or_check(file: Path, wanted: str, name: str, arguments: list[str]) -> int:
    """Write the file, or with `--check` say where it differs; the exit code is 1 when the check fails."""
    if is_check(arguments, f"Writes {name} anew."):
        if file.exists() and file.read_text() == wanted:
            return 0
        print(f"{name} is stale: run `make generate`", file=sys.stderr)
        return 1
    file.write_text(wanted)
    return 0


def write_or_check_folder(folder: Path, wanted: dict[str, str], name: str, arguments: list[str], kept: str = "") -> int:
    """The same for the YAML files of a folder by their names; others are removed, but for the one that is `kept`."""
    present = [path for path in folder.glob("*.yaml") if path.name != kept]
    if is_check(arguments, f"Writes {name} anew."):
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
