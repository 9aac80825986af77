"""The locked versions under `requirements/`: `renew` resolves them anew, `check` tells whether they are stale.

A lock is stale when the dependencies in pyproject.toml changed since it was made: its first line holds their digest.
Checking needs no network. A lock holds versions and hashes, never the address of an index.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LOCKS: dict[str, list[str]] = {
    # What runs in the manager's image; the next one only builds it.
    "manager.txt": ["pyproject.toml", "--extra", "uvloop"],
    "build.txt": ["--group", "build"],
    "dev.txt": ["pyproject.toml", "--extra", "uvloop", "--group", "dev"],
}


def digest_of(pyproject: str) -> str:
    """Return the digest of everything in pyproject.toml that decides what is locked."""
    document = tomllib.loads(pyproject)
    project = document["project"]
    inputs = [
        project["requires-python"],
        project["dependencies"],
        project.get("optional-dependencies", {}),
        document.get("dependency-groups", {}),
        LOCKS,
    ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def header_of(pyproject: str) -> str:
    """Return the first line of a lock that is made from this pyproject.toml."""
    return f'# Made by "make lock" from the dependencies in pyproject.toml, sha256:{digest_of(pyproject)}\n'


def pins_of(lock: str) -> dict[str, str]:
    """Return the version of each package in a lock."""
    return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", lock, re.MULTILINE))


def findings(root: Path) -> list[str]:
    """Return what is wrong with the locks below `root`, one sentence each."""
    header = header_of((root / "pyproject.toml").read_text())
    problems = []
    pins: dict[str, dict[str, str]] = {}
    for name in LOCKS:
        path = root / "requirements" / name
        if not path.exists():
            problems.append(f"requirements/{name} is missing: run `make lock`.")
            continue
        lock = path.read_text()
        pins[name] = pins_of(lock)
        if not lock.startswith(header):
            problems.append(f"requirements/{name} is stale, pyproject.toml has other dependencies: run `make lock`.")
        if "://" in lock or "--index-url" in lock:
            problems.append(f"requirements/{name} holds an address: locks name versions and hashes only.")
        if re.search(r"^[a-z0-9._-]+==.*[^\\]$", lock, re.MULTILINE):
            problems.append(f"requirements/{name} holds a version without a hash: run `make lock`.")
    tested = pins.pop("dev.txt", {})
    for name, versions in pins.items():
        for package, version in versions.items():
            if tested and tested.get(package) != version:
                problems.append(f"{package} {version} of {name} is not what dev.txt tests: run `make lock`.")
    return problems


def renew(root: Path) -> None:
    """Resolve every lock to the newest versions; either all are replaced or none."""
    header = header_of((root / "pyproject.toml").read_text())
    folder = root / "requirements"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, options in LOCKS.items():
            print(f"resolving {name}", file=sys.stderr)
            lock = Path(scratch, name)
            command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *options]
            command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header"]
            command += ["--no-emit-index-url", "--no-annotate", "--upgrade", "--output-file", str(lock)]
            subprocess.run(command, cwd=root, check=True)
            lock.write_text(header + lock.read_text())
        for name in LOCKS:
            os.replace(Path(scratch, name), folder / name)


def main() -> int:
    """Run `lock.py check` or `lock.py renew`."""
    parser = argparse.ArgumentParser(description="Check or renew the locked versions under requirements/.")
    parser.add_argument("action", choices=["check", "renew"])
    if parser.parse_args().action == "renew":
        try:
            renew(ROOT)
        except subprocess.CalledProcessError:
            print("error: the versions could not be resolved (see above); the locks are unchanged.", file=sys.stderr)
            return 1
    problems = findings(ROOT)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
