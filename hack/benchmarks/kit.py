"""`hack/bench/kit`: the speed and size of the controller kit."""

from __future__ import annotations

import sys

from benchmarks import informer, queue
from benchmarks.figure import print_figures


def main() -> None:
    """Measure everything and exit with 1 where a target is missed."""
    sys.exit(print_figures([queue.measure(), *informer.measure()]))


if __name__ == "__main__":
    main()
