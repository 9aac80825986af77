"""`python -m controlplane`: make sure that everything the control plane needs is built, or say where it is."""

from __future__ import annotations

import argparse

from controlplane.build import built_programs, ensure_assets
from controlplane.problem import told_to_the_user


def main() -> None:
    """Build what is missing; with --paths only print where each program is that has been built."""
    parser = argparse.ArgumentParser(
        prog="make controlplane",
        description="Build etcd, Kubernetes, the JobSet controller, kwok and the Go original into the user's cache.",
    )
    parser.add_argument(
        "--paths", action="store_true", help="build nothing, and print the path of each program that is there"
    )
    arguments = parser.parse_args()
    with told_to_the_user():
        if not arguments.paths:
            ensure_assets()
            return
        for name, path in built_programs().items():
            print(f"{name}\t{path}")


if __name__ == "__main__":
    main()
