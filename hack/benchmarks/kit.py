"""The speed and size of the controller kit: its workqueue, and an informer on a real API server."""

from __future__ import annotations

from benchmarks import informer, queue
from benchmarks.command import build_parser, run


def main() -> None:
    """Measure everything."""
    build_parser("kit", __doc__).parse_args()
    run(lambda: [queue.measure(), *informer.measure()])


if __name__ == "__main__":
    main()
