"""`python -m controlplane`: make sure that everything the control plane needs is built, and say where it is."""

from __future__ import annotations

import argparse

from controlplane.build import ensure_assets
from controlplane.problem import told_to_the_user


def main() -> None:
    """Build what is missing; with --paths print where each program is."""
    parser = argparse.ArgumentParser(
        prog="make controlplane",
        description="Build etcd, Kubernetes, the JobSet controller, kwok and the Go original into the user's cache.",
    )
    parser.add_argument("--paths", action="store_true", help="print the path of each program")
    arguments = parser.parse_args()
    with told_to_the_user():
        assets = ensure_assets()
        if arguments.paths:
            for name, path in assets.programs.items():
                print(f"{name}\t{path}")


if __name__ == "__main__":
    main()
