"""A stand-in for the Go toolchain: a program on PATH that answers what the control plane's build asks of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!/usr/bin/env python3
import json, os, pathlib, sys, time
settings = json.loads({settings!r})
log = pathlib.Path(settings["log"])
arguments = sys.argv[1:]
with log.open("a") as file:
    file.write(json.dumps(arguments) + "\\n")
if arguments[0] == "version":
    print(settings["version"])
elif arguments[0] == "env":
    print(settings["cache"])
    print(settings["cache"])
elif arguments[:2] == ["mod", "download"]:
    print(json.dumps({{"Dir": settings["module"]}}))
else:
    output = pathlib.Path(arguments[arguments.index("-o") + 1])
    output.write_bytes(b"half")
    print("some/package", file=sys.stderr, flush=True)
    if settings["hangs"]:
        time.sleep(60)
    if settings["failure"]:
        print(settings["failure"], file=sys.stderr)
        sys.exit(1)
    output.write_bytes(b"whole")
"""


class FakeGo:
    """The fake toolchain in a folder of its own; `calls` is what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fakego"
        self.module = folder / "module"
        self._log = folder / "calls.log"
        (folder / "gocache").mkdir(parents=True)
        self.module.mkdir()
        self.folder.mkdir()
        self._settings: dict[str, object] = {
            "version": "go version go1.26.8 linux/amd64",
            "log": str(self._log),
            "cache": str(folder / "gocache"),
            "module": str(self.module),
            "failure": "",
            "hangs": False,
        }
        self.set()

    def set(self, **settings: object) -> None:
        """Change how it behaves: version, failure (text on stderr), hangs."""
        self._settings.update(settings)
        program = self.folder / "go"
        program.write_text(_SCRIPT.format(settings=json.dumps(self._settings)))
        program.chmod(0o755)

    @property
    def builds(self) -> list[str]:
        """The packages that it was asked to build."""
        if not self._log.exists():
            return []
        calls = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [call[-1] for call in calls if call[0] == "build"]
