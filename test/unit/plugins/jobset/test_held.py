from typing import Any

import pytest

from ktrainer.framework.component import Fallback
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.kube.patches import merge_apply
from ktrainer.plugins.jobset.held import HAS_RUN, PROMPT_SECONDS, fallback_of, has_never_run

CREATED = "2026-01-02T03:04:00Z"
SUSPENDED = {"type": "Suspended", "status": "True", "lastTransitionTime": CREATED}


def fallback(wanted: dict[str, Any], present: dict[str, Any]) -> Fallback:
    found = fallback_of(wanted, present, "trainer")
    assert found is not None
    return found


def wanted(**pods: Any) -> dict[str, Any]:
    """A JobSet as it shall be, with more of its pod spec."""
    template = {"metadata": {"labels": {"l": "new"}}, "spec": {"containers": [{"name": "node"}], **pods}}
    job = {"name": "node", "template": {"spec": {"parallelism": 2, "completions": 2, "template": template}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "demo", "labels": {"team": "blue"}},
        "spec": {"suspend": False, "replicatedJobs": [job]},
    }


def present(*, generation: int = 2, conditions: Any = (SUSPENDED,), **status: Any) -> dict[str, Any]:
    """The same JobSet from before, suspended, as a server has it."""
    jobset = wanted(nodeSelector={"zone": "old"}, priorityClassName="high")
    jobset["metadata"] = {"name": "demo", "uid": "u", "resourceVersion": "7", "generation": generation}
    jobset["metadata"]["creationTimestamp"] = CREATED
    jobset["spec"] |= {"suspend": True, "network": {"subdomain": "s"}}
    jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = {"annotations": {"a": "old"}}
    jobset["status"] = {"conditions": list(conditions), **status}
    return jobset


def counted(**counts: int) -> list[dict[str, Any]]:
    return [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 1, **counts}]


def suspended_at(second: int) -> dict[str, str]:
    return {**SUSPENDED, "lastTransitionTime": f"2026-01-02T03:04:{second:02}Z"}


@pytest.mark.parametrize(
    "jobset, expected",
    [
        pytest.param(present(generation=1, conditions=()), True, id="just created"),
        pytest.param(present(generation=1, conditions=[suspended_at(59)]), True, id="its controller was late"),
        pytest.param(present(replicatedJobsStatus=counted()), True, id="suspended and changed"),
        pytest.param(present(conditions=[suspended_at(PROMPT_SECONDS)]), True, id="suspended in time"),
        pytest.param(present(conditions=[suspended_at(PROMPT_SECONDS + 1)]), False, id="suspended later"),
        pytest.param(present(conditions=()), False, id="not yet suspended"),
        pytest.param(present(conditions=[{**SUSPENDED, "status": "False"}]), False, id="resumed"),
        pytest.param(
            present(conditions=[SUSPENDED, {"type": "StartupPolicyInProgress", "status": "True"}]),
            False,
            id="resumed in order",
        ),
        pytest.param(present(conditions=[{"type": "Suspended", "status": "True"}]), False, id="without a time"),
        pytest.param(
            present(conditions=[{**SUSPENDED, "lastTransitionTime": "2026-01-02T03:03:59Z"}]), False, id="odd clocks"
        ),
        pytest.param(present(restarts=1), False, id="restarted"),
        pytest.param(present(replicatedJobsStatus=counted(succeeded=1)), False, id="a job is done"),
        pytest.param(present(replicatedJobsStatus=counted(failed=1)), False, id="a job failed"),
        pytest.param(present(replicatedJobsStatus=counted(ready=1)), False, id="a job was ready"),
        pytest.param(present(generation=1, restarts=1), False, id="restarted, as somebody says"),
    ],
)
def test_only_what_has_certainly_never_run_should_be_made_anew(jobset: dict[str, Any], expected: bool) -> None:
    assert has_never_run(jobset) is expected
    found = fallback(wanted(), jobset)
    assert (found.renews, found.body is None) == (expected, expected)


def test_what_has_run_should_take_what_it_may() -> None:
    there = present(restarts=1)
    before = copy_of(there)
    change = {"nodeSelector": {"zone": "new"}, "tolerations": [{"key": "gpu"}], "affinity": {"podAffinity": {"a": 1}}}
    found = fallback(wanted(**change), there)
    assert found.body is not None
    assert found.body["metadata"] == {"name": "demo", "labels": {"team": "blue"}, "resourceVersion": "7"}
    spec = found.body["spec"]
    assert (spec["suspend"], spec["network"]) == (False, {"subdomain": "s"})
    assert spec["replicatedJobs"][0]["template"]["spec"]["template"] == {
        "metadata": {"labels": {"l": "new"}},
        "spec": {
            "containers": [{"name": "node"}],
            "priorityClassName": "high",
            "nodeSelector": {"zone": "new"},
            "tolerations": [{"key": "gpu"}],
        },
    }
    assert there == before, "what is there is not ours to change"


def test_what_has_taken_all_that_it_may_should_be_left_alone() -> None:
    change = wanted(affinity={"podAffinity": {"a": 1}})
    change["spec"]["suspend"] = True
    there = present(restarts=1)
    first = fallback(change, there)
    assert first.body is not None
    there["spec"] = copy_of(first.body["spec"])
    assert fallback(change, there).body is not None, "its label is missing"
    there["metadata"]["labels"] = {"team": "blue", "others": "1"}
    second = fallback(change, there)
    assert (second.body, second.renews, second.reason) == (None, False, first.reason)


def test_what_it_does_not_take_should_be_told() -> None:
    reason = fallback(wanted(affinity={"podAffinity": {"a": 1}}), present(restarts=1)).reason
    pods = "spec.replicatedJobs[node].template.spec.template.spec"
    assert reason == f"{HAS_RUN} {pods}.priorityClassName, {pods}.affinity, spec.network"


def test_a_number_of_nodes_that_it_does_not_take_should_be_told_with_the_gate() -> None:
    more = wanted()
    more["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 3, "completions": 3}
    found = fallback(more, present(restarts=1))
    assert found.body is not None
    assert found.body["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2
    assert "ElasticJobSet" in found.reason
    assert "ElasticJobSet" not in fallback(wanted(), present(restarts=1)).reason


def test_jobs_that_only_one_of_both_has_should_stay_as_they_are() -> None:
    there, more = present(restarts=1), wanted()
    there["spec"]["replicatedJobs"].append({**there["spec"]["replicatedJobs"][0], "name": "kept"})
    more["spec"]["replicatedJobs"].append({**more["spec"]["replicatedJobs"][0], "name": "lacking"})
    found = fallback(more, there)
    assert found.body is not None
    assert [job["name"] for job in found.body["spec"]["replicatedJobs"]] == ["node", "kept"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"suspend": False}}, id="resumed"),
        pytest.param({"status": {"replicatedJobsStatus": counted(active=1)}}, id="with pods"),
        pytest.param({"metadata": {"deletionTimestamp": CREATED}}, id="going"),
    ],
)
def test_a_jobset_that_is_not_held_any_more_should_be_left_alone(change: dict[str, Any]) -> None:
    assert fallback_of(wanted(), merge_apply(change, present()), "trainer") is None


def test_only_what_is_ours_should_be_applied_again() -> None:
    there = present(restarts=1)
    under: dict[str, Any] = {
        "f:name": {},
        "f:template": {"f:spec": {"f:template": {"f:spec": {"f:priorityClassName": {}}}}},
    }
    ours = {"f:spec": {"f:replicatedJobs": {'k:{"name":"node"}': {".": {}, **under}}}}
    there["metadata"]["managedFields"] = [{"manager": "trainer", "operation": "Apply", "fieldsV1": ours}]
    found = fallback(wanted(), there)
    assert found.body is not None
    pods = {"metadata": {"labels": {"l": "new"}}, "spec": {"priorityClassName": "high"}}
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    assert found.body["spec"] == {"suspend": False, "replicatedJobs": jobs}


def test_a_jobset_that_others_have_applied_should_be_resumed_all_the_same() -> None:
    there = present(restarts=1)
    there["metadata"]["managedFields"] = [{"manager": "trainer", "operation": "Apply", "fieldsV1": {}}]
    found = fallback(wanted(), there)
    there["metadata"]["managedFields"] = [{"manager": "other", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
    other = fallback(wanted(), there)
    assert found.body is not None
    assert other.body is not None
    assert found.body["spec"] == other.body["spec"] == {"suspend": False, "replicatedJobs": []}
