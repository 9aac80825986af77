"""Lives of TrainJobs on a real control plane, many at a time, each told by a function in a thread of its own.

    def fails(life: Life) -> None:
        life.begin()
        life.wait("Running")
        ...

The manager may be killed meanwhile. Then admission is not to be had for a while, and a life tries again, as people do;
nothing else of what it waits for may depend on it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.api import Refused
from clusters.stages import RUNS_FOR
from clusters.wait import wait_for
from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, TRAINING_RUNTIMES, TRAINJOBS
from support.workplace import LONG, Workplace, patched, states_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.api import Object
    from ktrainer.kube.identity import Resource
    from support.pluginlives import PluginCase
    from support.statecolumn import StateColumn

PATIENCE_SECONDS = 90.0
"""How long anything may take while all lives are lived, and the manager comes and goes."""


EDITED = "edited.example/"
"""Where the images of an edited runtime are."""


class Progress:
    """How many steps all lives together have done; for several threads."""

    def __init__(self) -> None:
        self._done = threading.Condition()
        self._steps = 0

    def step(self) -> None:
        """Another step is done."""
        with self._done:
            self._steps += 1
            self._done.notify_all()

    def wait(self, steps: int) -> None:
        """Wait until so many steps are done, or none was for a long time: whoever waits for them will tell why."""
        with self._done:
            while self._steps < steps and self._done.wait(PATIENCE_SECONDS):
                pass


@dataclass(frozen=True)
class Life:
    """One TrainJob of a plugin, with a runtime of its own."""

    case: PluginCase
    kind: str
    """What becomes of it, in a word."""
    workplace: Workplace
    column: StateColumn
    progress: Progress

    @property
    def name(self) -> str:
        """The name of the TrainJob."""
        return f"{self.case.name}-{self.kind}"

    @property
    def runtime(self) -> str:
        """The name of its runtime."""
        name: str = self.case.runtime(self.kind)["metadata"]["name"]
        return name

    def begin(self, **spec: Any) -> None:
        """Create runtime and TrainJob."""
        runtime = self.case.runtime(self.kind)
        self._insist(lambda: self.workplace.add_runtime(runtime))
        trainer = {"numNodes": self.case.nodes, **self.case.trainer}
        given = {"trainer": trainer, "runtimePatches": self.patches("first"), **spec}
        self._insist(lambda: self.workplace.submit(self.name, runtime=self.runtime, **given))

    def patches(self, run: str) -> list[Object]:
        """Patches by which its pods run for long, and can be told from those of another run."""
        return patched({RUNS_FOR: LONG, "test/run": run}, *self.case.jobs)

    def change(self, **spec: Any) -> None:
        """Change the TrainJob."""
        self._insist(lambda: self.workplace.change(self.name, **spec))

    def wait(self, state: str) -> Object:
        """Wait until kubectl shows a state, and return the TrainJob."""
        self.column.wait(self.name, state, PATIENCE_SECONDS)
        self.progress.step()
        return self.workplace.trainjob(self.name)

    def check_run(self, run: str) -> None:
        """Wait until the pods of a run are there, all of them and no others, as the plugin wants them."""

        job = "node"
        self._wait_run(run, job, self.case.nodes)
        texts = [json.dumps(pod) for pod in self.workplace.pods(self.name, job)]
        assert all(self.case.mark in text and EDITED not in text for text in texts), texts
        self.progress.step()

    def end_pods(self, run: str, *, code: int = 0) -> None:
        """Let the pods of a run end that everybody waits for; they may come later than all nodes."""
        job = self.case.jobs[0]
        self._wait_run(run, job, 1 if job != "node" else self.case.nodes)
        self.workplace.end_pods(self.name, job, code=code)

    def children(self) -> dict[str, str]:
        """The uids of all that is to be made for the TrainJob; raises Refused where something is missing."""
        kinds = ((JOBSETS, ""), (CONFIG_MAPS, "-runtime-snapshot"), *self.case.made)
        paths = [self.workplace.path(kind, self.name + suffix) for kind, suffix in kinds]
        return {path: self.workplace.admin.get(path)["metadata"]["uid"] for path in paths}

    def edit_runtime(self) -> None:
        """Change the runtime in a way that every pod would show."""
        path = self.workplace.path(TRAINING_RUNTIMES, self.runtime)
        jobs = self.case.spec["template"]["spec"]["replicatedJobs"]
        edited = [{**job, "template": json.loads(json.dumps(job["template"]).replace("img/", EDITED))} for job in jobs]
        change = {"spec": {"template": {"spec": {"replicatedJobs": edited}}}}
        self._insist(lambda: self.workplace.admin.merge(path, change))

    def delete_runtime(self) -> None:
        """Ask for the deletion of the runtime; it stays for as long as it is in use."""
        self.workplace.admin.delete(self.workplace.path(TRAINING_RUNTIMES, self.runtime))

    def check_end(self, state: str, reason: str = "") -> Object:
        """Wait for the end, and for what follows from it; return the TrainJob."""
        ended = self.wait(state)
        conditions = states_of(ended)
        assert conditions[state].startswith(f"True {reason}"), conditions
        assert conditions["Running"] == "False Finished"
        assert ended["status"]["completionTime"]
        if self.case.released:
            self._wait_gone(self.case.released, self.name)
        return ended

    def wait_jobset_gone(self) -> None:
        """Wait until the JobSet is gone."""
        self._wait_gone(JOBSETS, self.name)

    def delete(self) -> None:
        """Delete the TrainJob, and the runtime with it."""
        self.workplace.admin.delete(self.workplace.path(TRAINJOBS, self.name))
        self.delete_runtime()

    def wait_gone(self) -> None:
        """Wait until TrainJob and runtime are gone."""
        self._wait_gone(TRAINJOBS, self.name)
        self._wait_gone(TRAINING_RUNTIMES, self.runtime)

    def _wait_run(self, run: str, job: str, count: int) -> None:
        def is_right() -> bool:
            pods = self.workplace.pods(self.name, job)
            return [pod["metadata"]["annotations"]["test/run"] for pod in pods] == [run] * count

        assert wait_for(is_right, PATIENCE_SECONDS, interval=0.5), f"{self.name} has no {job} for the run {run}"

    def _wait_gone(self, resource: Resource, name: str) -> None:
        is_gone = wait_for(lambda: not self.workplace.has(resource, name), PATIENCE_SECONDS, interval=0.5)
        assert is_gone, f"the {resource.kind} {name} is still there"
        self.progress.step()

    def _insist(self, deed: Callable[[], object]) -> None:
        """Do something that admission must agree to, however often that takes."""

        def is_done() -> bool:
            try:
                deed()
            except Refused as refusal:
                if refusal.code == 409 and "AlreadyExists" in str(refusal):
                    # The answer of an earlier try was lost.
                    return True
                if refusal.code < 500:
                    raise
                return False
            return True

        assert wait_for(is_done, PATIENCE_SECONDS, interval=0.5), f"nobody admits what {self.name} wants"
        self.progress.step()
