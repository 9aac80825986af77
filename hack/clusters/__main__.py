"""`hack/cluster`: the commands that developers and make use."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, NoReturn

from clusters import audit, lifecycle, report
from clusters.folder import Folder
from clusters.kubeconfig import IDENTITIES, PEOPLE
from clusters.logs import merged
from clusters.plan import Options, Plan
from controlplane.build import ensure_assets
from controlplane.problem import Problem, told_to_the_user
from controlplane.product import JOBSET, KUBERNETES, ORIGINAL, PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable


def up(arguments: argparse.Namespace) -> int:
    """Start a cluster."""
    folder = Folder.named(arguments.name)
    options = Options(arguments.nodes, "original" in arguments.extras, arguments.port)
    if options.nodes < 0:
        raise Problem(f"--nodes {options.nodes}: the number of nodes is 0 or more.")
    needed = [product for product in PRODUCTS if product.name != "original" or options.with_original]
    lifecycle.up(folder, ensure_assets(products=needed), options, lambda text: print(text, file=sys.stderr, flush=True))
    plan = Plan.from_json(folder.read_plan())
    parts = [f"Kubernetes {KUBERNETES}", f"JobSet {JOBSET}", f"{plan.nodes} fake nodes"]
    parts += [f"Kubeflow Trainer {ORIGINAL}"] if options.with_original else []
    print(f"cluster {folder.name} is ready at {plan.server}: {', '.join(parts)}")
    print(f"  export KUBECONFIG={folder.kubeconfig('admin')}")
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Remove a cluster."""
    folder = Folder.named(arguments.name)
    existed = folder.exists
    lifecycle.down(folder)
    print(f"cluster {folder.name} is gone" if existed else f"there was no cluster {folder.name}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Tell the state of each component."""
    folder = Folder.named(arguments.name)
    states = report.states_of(folder)
    print(report.describe(folder, states))
    return 0 if all(state.word == "ready" for state in states) else 1


def list_clusters(_: argparse.Namespace) -> int:
    """List all clusters."""
    for folder in Folder.all():
        try:
            states = report.states_of(folder)
        except Problem as problem:
            print(f"{folder.name}\t{problem}")
            continue
        broken = [f"{state.name} {state.word}" for state in states if state.word != "ready"]
        print(f"{folder.name}\t{'; '.join(broken) or 'ready'}\t{Plan.from_json(folder.read_plan()).server}")
    return 0


def kubeconfig(arguments: argparse.Namespace) -> int:
    """Print where the kubeconfig of a user is."""
    folder = Folder.named(arguments.name)
    folder.read_plan()
    print(folder.kubeconfig(arguments.user))
    return 0


def logs(arguments: argparse.Namespace) -> int:
    """Print logs."""
    folder = Folder.named(arguments.name)
    components = [component.name for component in Plan.from_json(folder.read_plan()).components]
    if arguments.component == "audit":
        for event in audit.events_of(folder.file("audit", "audit.log"), arguments.user):
            print(json.dumps(event) if arguments.json else audit.describe(event))
    elif arguments.component == "all":
        for line in merged(folder):
            print(line)
    elif arguments.component in components:
        sys.stdout.write(folder.log(arguments.component).read_text(errors="replace"))
    else:
        choices = ", ".join(["all", "audit", *components])
        raise Problem(f"the cluster {folder.name!r} has no component {arguments.component!r}: choose of {choices}.")
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="hack/cluster",
        description="Real Kubernetes control planes on loopback, as many side by side as you like.",
        epilog="The first `up` builds the programs (about 12 minutes); later ones take about 10 seconds.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        if name != "list":
            added.add_argument("--name", default="default", help="which cluster (default: %(default)s)")
        return added

    starting = command("up", up, "Start a cluster and wait until all of it is ready.")
    starting.add_argument("--nodes", type=int, default=0, help="fake nodes that run pods (default: %(default)s)")
    starting.add_argument("--port", type=int, help="port of the API server (default: a free one)")
    starting.add_argument(
        "--with",
        dest="extras",
        action="append",
        choices=["original"],
        default=[],
        help="also run the Go original's manager, with its CRDs and webhooks",
    )
    command("down", down, "Remove a cluster: its processes, its ports, its files.")
    command("status", status, "Tell which components are ready; exit code 1 where one is not.")
    command("list", list_clusters, "List the clusters and their states.")
    users = command("kubeconfig", kubeconfig, "Print the path of a user's kubeconfig.")
    users.add_argument("user", metavar="USER", choices=sorted(IDENTITIES), help=f"{', '.join(PEOPLE)} or a component")
    reading = command("logs", logs, "Print the log of a component, of all of them merged by time, or the audit log.")
    reading.add_argument("component", metavar="COMPONENT", help="a component, `all`, or `audit`")
    reading.add_argument("--user", help="of the audit log: only the requests of this user")
    reading.add_argument("--json", action="store_true", help="of the audit log: the events in full")
    return parser


def main() -> NoReturn:
    """Run one command; a Problem becomes a sentence and exit code 1."""
    arguments = build_parser().parse_args()
    with told_to_the_user():
        sys.exit(arguments.run(arguments))
    raise AssertionError


if __name__ == "__main__":
    main()
