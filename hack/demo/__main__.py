"""`hack/run`: ktrainer on a cluster of its own, on loopback, with a TrainJob of each shipped runtime."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from clusters import lifecycle
from clusters.folder import Folder
from controlplane.build import ensure_assets
from controlplane.problem import told_to_the_user
from controlplane.product import PRODUCTS
from demo import show
from demo.screen import screen_for

if TYPE_CHECKING:
    from pathlib import Path

    from demo.jobs import Row


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="hack/run",
        description="Bring up a Kubernetes control plane on loopback, install ktrainer, start its manager, and show the"
        " life of a TrainJob of each shipped runtime on fake nodes.",
        epilog="Ends when all TrainJobs have: with 0 where all are complete, with 1 where one failed. The cluster stays"
        " for you to look at; Ctrl-C before the end removes everything.",
    )
    parser.add_argument(
        "--name", default="run", help="the cluster's name (default: %(default)s); one of that name is replaced"
    )
    parser.add_argument("--down", action="store_true", help="remove the cluster at the end")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the whole show; return the exit code."""
    folder = Folder.named(arguments.name)
    assets = ensure_assets(products=[product for product in PRODUCTS if product.name != "original"])
    lifecycle.down(folder)
    try:
        deployment = show.prepare(folder, assets, _say)
        rows = show.play(deployment, screen_for(sys.stdout), _say)
    except BaseException:
        lifecycle.down(folder)
        raise
    _conclude(rows)
    if arguments.down:
        lifecycle.down(folder)
    else:
        print(next_steps(folder, assets.programs["kubectl"], rows[0].name))
    return 0 if all(row.state == "Complete" for row in rows) else 1


def next_steps(folder: Folder, kubectl: Path, trainjob: str) -> str:
    """What to try while the cluster is there."""
    return f"""
The cluster and the manager go on running. Try next:

  export KUBECONFIG={folder.kubeconfig("admin")}
  export PATH={kubectl.parent}:$PATH
  kubectl get trainjobs
  kubectl describe trainjob {trainjob}
  kubectl get jobsets,jobs,pods
  kubectl get clustertrainingruntimes
  kubectl label clustertrainingruntime torch-distributed trainer.kubeflow.org/support=deprecated
  kubectl delete trainjobs --all && kubectl create -f examples/trainjobs/
  hack/cluster logs ktrainer-manager --name {folder.name}
  hack/cluster down --name {folder.name}      # removes all of it"""


def _conclude(rows: list[Row]) -> None:
    failed = [row.name for row in rows if row.state != "Complete"]
    print(f"\n{len(rows) - len(failed)} of {len(rows)} TrainJobs are complete", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "", flush=True)


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> NoReturn:
    """Run; a Problem becomes a sentence and exit code 1."""
    arguments = build_parser().parse_args()
    with told_to_the_user():
        sys.exit(run(arguments))
    raise AssertionError


if __name__ == "__main__":
    main()
