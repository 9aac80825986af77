"""P10: whoever writes to the status in whatever order, nothing of others is lost, and an end is the end."""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ktrainer.api.decoding import decode
from ktrainer.api.trainjob import TrainJob
from ktrainer.api.trainjobstatus import JobStatus, Reason
from ktrainer.controllers.trainjob.brevity import abridged
from ktrainer.controllers.trainjob.conditions import OURS, end_of
from ktrainer.controllers.trainjob.status import Seen, build_status, ours_of, settled_status
from ktrainer.controllers.trainjob.verdict import READY, Verdict
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube.conditions import Condition
from support.statusapply import AppliedStatus
from support.training import as_trainjob, trainjob_json
from support.virtualtime import EPOCH

ENDS = st.sampled_from([None, None, None, "Complete", "Failed"])
VERDICTS = st.sampled_from([READY, Verdict(Reason.APPLY_FAILED, "no"), Verdict(Reason.RUNTIME_NOT_FOUND, "gone")])


class Writers(RuleBasedStateMachine):
    """Our controller, maybe with an old look at the object, the progress server, and a writer of foreign conditions."""

    @initialize()
    def begin(self) -> None:
        self.status = AppliedStatus()
        self.seconds = 0
        self.suspend = False
        self.foreign: dict[str, str] = {}
        self.progress: dict[str, Any] | None = None
        self.before: dict[str, tuple[str, str]] = {}
        self.end: str | None = None

    @rule()
    def pass_time(self) -> None:
        self.seconds += 7

    @rule()
    def flip_suspend(self) -> None:
        self.suspend = not self.suspend

    @rule(kind=st.sampled_from(["QuotaReserved", "Admitted"]), status=st.sampled_from(["True", "False"]))
    def write_foreign(self, kind: str, status: str) -> None:
        self.foreign[kind] = status
        conditions = [
            {"type": each, "status": value, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for each, value in self.foreign.items()
        ]
        self.status.apply("kueue", {"conditions": conditions})

    @rule(percent=st.integers(0, 100))
    def write_progress(self, percent: int) -> None:
        self.progress = {"progressPercentage": percent, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
        self.status.apply("trainer-status", {"trainerStatus": self.progress})

    @rule(end=ENDS, verdict=VERDICTS, ready=st.integers(0, 2), brief=st.booleans())
    def reconcile(self, end: str | None, verdict: Verdict, ready: int, *, brief: bool) -> None:
        job = self.trainjob()
        now = EPOCH + timedelta(seconds=self.seconds)
        if end_of(job.status.conditions):
            new = settled_status(job, now)
        else:
            counts = JobStatus(name="node", ready=ready, succeeded=0, failed=0, active=1, suspended=0)
            workload = WorkloadStatus(jobs=(counts,), replicas={"node": 1})
            finished = Condition(type=end, status="True", reason="Over") if end else None
            new = build_status(job, Seen(verdict=verdict, workload=workload, end=finished), now)
            self.end = self.end or end
        self.status.apply("trainer", ours_of(abridged(new) if brief else new))

    def trainjob(self) -> TrainJob:
        value = {**trainjob_json(suspend=self.suspend), "status": self.status.value()}
        value["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        return as_trainjob(value)

    @invariant()
    def check_what_others_wrote(self) -> None:
        value = self.status.value()
        conditions = {each["type"]: each["status"] for each in value.get("conditions", [])}
        assert self.foreign.items() <= conditions.items()
        assert value.get("trainerStatus") == self.progress
        assert isinstance(decode(TrainJob, {**trainjob_json(), "status": value}), TrainJob)

    @invariant()
    def check_times(self) -> None:
        now = {
            each["type"]: (each["status"], each["lastTransitionTime"])
            for each in self.status.value().get("conditions", [])
            if each["type"] in list(OURS)
        }
        for kind, (status, at) in now.items():
            if kind in self.before:
                old_status, old_at = self.before[kind]
                assert (status == old_status) == (at == old_at) or status != old_status
        missing = self.before.keys() - now.keys()
        assert missing in (set(), {"ResourcesReady", "Running"})
        assert not missing or self.status.value()["state"] == "Running"
        self.before = now

    @invariant()
    def check_the_end(self) -> None:
        if self.end:
            value = self.status.value()
            assert value["state"] == self.end
            (ended,) = [each for each in value["conditions"] if each["type"] in {"Complete", "Failed"}]
            assert (ended["type"], ended["status"]) == (self.end, "True")


TestWriters = Writers.TestCase
