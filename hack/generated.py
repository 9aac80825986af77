"""A file that is generated: written anew, or only checked to be what would be written."""

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
