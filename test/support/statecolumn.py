"""What `kubectl get trainjobs --watch` prints: the state of each TrainJob at every moment, as a user sees it."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from support.kubectl import Kubectl

STATES = ("Suspended", "Pending", "Running", "Complete", "Failed")
_ROW = re.compile(rf"(\S+) +({'|'.join(STATES)})? ")


class StateColumn:
    """The states that were printed, by TrainJob, each change once. For several threads."""

    def __init__(self) -> None:
        self._printed: dict[str, list[str]] = defaultdict(list)
        self._changed = threading.Condition()

    def print(self, row: str) -> None:
        """Take note of a row."""
        found = _ROW.match(row)
        assert found, f"kubectl has printed something else: {row!r}"
        name, state = found.groups()
        with self._changed:
            states = self._printed[name]
            if state and states[-1:] != [state]:
                states.append(state)
            self._changed.notify_all()

    def wait(self, name: str, state: str, seconds: float) -> None:
        """Wait until a TrainJob is shown in a state."""
        with self._changed:
            is_shown = self._changed.wait_for(lambda: self._printed[name][-1:] == [state], seconds)
            assert is_shown, f"{name} is not {state} after {seconds:g} s, but was {self._printed[name]}"

    def history(self, name: str) -> list[str]:
        """All states in which a TrainJob was shown, Pending aside: one does not see it where things go fast."""
        with self._changed:
            shown = [state for state in self._printed[name] if state != "Pending"]
        return [state for index, state in enumerate(shown) if shown[index - 1 : index] != [state]]


@contextmanager
def watched_states(kubectl: Kubectl, namespace: str) -> Iterator[StateColumn]:
    """Let kubectl print the TrainJobs of a namespace whenever one changes."""
    column = StateColumn()
    with kubectl.stream("get", "trainjobs", f"--namespace={namespace}", "--watch", "--no-headers") as process:
        reader = threading.Thread(target=_read, args=(process, column), name="kubectl")
        reader.start()
        try:
            yield column
        finally:
            process.kill()
            reader.join()


def _read(process: subprocess.Popen[str], column: StateColumn) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        column.print(line)
