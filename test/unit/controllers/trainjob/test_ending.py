from datetime import timedelta

from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.controllers.trainjob.ending import decide_end
from ktrainer.controllers.trainjob.status import Seen, build_status
from ktrainer.controllers.trainjob.verdict import READY
from support.training import as_trainjob, trainjob_json
from support.virtualtime import EPOCH


def test_a_deadline_should_be_exceeded_when_it_was_judged_so_even_if_the_clock_is_set_back_since() -> None:
    value = trainjob_json(activeDeadlineSeconds=60)
    value["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    trainjob, judged_at = as_trainjob(value), EPOCH + timedelta(seconds=60)
    assert decide_end(trainjob, None, None, RunPolicy(), judged_at - timedelta(seconds=1)) is None
    end = decide_end(trainjob, None, None, RunPolicy(), judged_at)
    assert end is not None
    status = build_status(trainjob, Seen(verdict=READY, end=end), judged_at - timedelta(seconds=1))
    assert status.completion_time == "2026-01-01T00:01:00Z"
