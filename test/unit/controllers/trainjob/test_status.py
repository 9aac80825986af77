from ktrainer.api.decoding import decode
from ktrainer.api.trainjobstatus import JobStatus, Reason, TrainJobStatus
from ktrainer.controllers.trainjob.conditions import failed_condition
from ktrainer.controllers.trainjob.status import JOBS_LIMIT, Seen, build_status, ours_of, settled_status
from ktrainer.controllers.trainjob.verdict import READY
from ktrainer.framework.workload import WorkloadStatus
from support.training import trainjob
from support.virtualtime import EPOCH


def test_more_jobs_than_a_status_can_tell_of_should_not_keep_the_end_from_being_told() -> None:
    jobs = tuple(
        JobStatus(name=f"job-{number}", ready=0, succeeded=0, failed=0, active=1, suspended=0) for number in range(101)
    )
    job = trainjob()
    end = failed_condition(job, Reason.DEADLINE_EXCEEDED, "late")
    status = build_status(job, Seen(verdict=READY, workload=WorkloadStatus(jobs=jobs), end=end), EPOCH)
    settled = settled_status(job.model_copy(update={"status": status}), EPOCH, jobs=jobs)
    for each in (status, settled):
        read = decode(TrainJobStatus, ours_of(each))
        assert isinstance(read, TrainJobStatus), read
        assert read.jobs_status == list(jobs[:JOBS_LIMIT])
