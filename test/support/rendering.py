"""Renders values as `ktrainer render --offline` does, here or in a process with other hashes.

As a program it reads documents as JSON, one list a line, and answers each line with what came of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import Rendering, render
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ktrainer.api.gates import Gate

J = dict[str, Any]


def rendered(
    *values: J, command: Any = render, namespace: str = "default", gates: Collection[Gate] | None = None
) -> Rendering:
    """What comes of documents with these values."""
    documents = [Document("f", number, value) for number, value in enumerate(values, 1)]
    reader = DocumentReader(documents, namespace)
    given = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    made: Rendering = run_now(command(documents, build_training(given, gates=gates), namespace))
    return made


def outcome_of(rendering: Rendering) -> bytes:
    """All that there is to see of a rendering, on one line, with the keys in their order."""
    said = [(report.errors, report.warnings) for report in rendering.reports]
    return orjson.dumps([rendering.objects, said])


@contextmanager
def other_process(hash_seed: int) -> Iterator[Callable[[list[J]], bytes]]:
    """A function that renders in another process, where sets and maps may have another order."""
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    command = [sys.executable, "-m", "support.rendering"]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        asked, answered = process.stdin, process.stdout
        if asked is None or answered is None:
            raise RuntimeError("the process has no pipes")

        def ask(values: list[J]) -> bytes:
            asked.write(orjson.dumps(values) + b"\n")
            asked.flush()
            return answered.readline().rstrip(b"\n")

        yield ask


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(outcome_of(rendered(*orjson.loads(line))) + b"\n")
        sys.stdout.buffer.flush()
