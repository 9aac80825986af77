"""Lists the packages of the manager's image, with their licences, as a CycloneDX document.

python hack/sbom.py            print the document
python hack/sbom.py --check    fail where a licence is none that may go into the image
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

import ktrainer
from generated import is_check
from lock import ROOT, pins_of

# Each can be shipped beside Apache-2.0 as long as its text is, which every wheel brings along.
PERMITTED: Final = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"}
# What packages wrote before licences had agreed names.
_OLD_NAMES: Final = {"Apache 2.0": "Apache-2.0", "MIT License": "MIT"}


@dataclass(frozen=True, order=True)
class Package:
    """One locked package, and the licence that it declares; empty where it declares none."""

    name: str
    version: str
    license: str


def main(arguments: list[str]) -> int:
    """Print the document, or check the licences; the exit code is 1 when the check fails."""
    packages = packages_of((ROOT / "requirements" / "manager.txt").read_text())
    if not is_check(arguments, "Prints the packages of the manager's image, with their licences."):
        print(json.dumps(build_document(packages), indent=2))
        return 0
    problems = findings(packages)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def packages_of(lock: str) -> list[Package]:
    """Return the packages of a lock, by name."""
    return [Package(name, version, license_of(name)) for name, version in sorted(pins_of(lock).items())]


def license_of(name: str) -> str:
    """Return what an installed package declares as its licence, as an SPDX expression."""
    declared = metadata.metadata(name)
    for field in ("License-Expression", "License"):
        if field in declared:
            return _OLD_NAMES.get(declared[field], declared[field])
    return ""


def findings(packages: list[Package]) -> list[str]:
    """Return which packages may not go into the image, one sentence each."""
    return [
        f"{package.name} {package.version} has the licence {package.license!r}, which is not among the permitted: "
        f"{', '.join(sorted(PERMITTED))}."
        for package in packages
        if not _is_permitted(package.license)
    ]


def _is_permitted(expression: str) -> bool:
    names = set(re.findall(r"[^\s()]+", expression)) - {"AND", "OR"}
    return bool(names) and names <= PERMITTED


def build_document(packages: list[Package]) -> dict[str, Any]:
    """Build the document; without a date or a serial number, so that the same lock gives the same document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "ktrainer",
                "version": ktrainer.__version__,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [
            {
                "type": "library",
                "name": package.name,
                "version": package.version,
                "purl": f"pkg:pypi/{package.name}@{package.version}",
                "licenses": [{"expression": package.license}],
            }
            for package in packages
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
