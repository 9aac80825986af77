from typing import Any

from ktrainer.kube.jsonvalue import copy_of
from ktrainer.plugins.jobset.ownership import applied_spec_of

APPLIED: dict[str, Any] = {
    "suspend": True,
    "replicatedJobs": [
        {
            "name": "node",
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "parallelism": 2,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "node",
                                    "image": "img",
                                    "ports": [{"containerPort": 29500}],
                                    "env": [{"name": "A", "value": ""}],
                                }
                            ],
                            "tolerations": [{"key": "x", "operator": "Exists"}],
                        }
                    },
                },
            },
        }
    ],
}
"""A spec, and below it what a real API server records of who applied it."""
CONTAINER: dict[str, Any] = {
    ".": {},
    "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
    "f:image": {},
    "f:name": {},
    "f:ports": {'k:{"containerPort":29500,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
}
PODS = {"f:spec": {"f:containers": {'k:{"name":"node"}': CONTAINER}, "f:tolerations": {}}}
TEMPLATE = {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:parallelism": {}, "f:template": PODS}}
JOBS = {'k:{"name":"node"}': {".": {}, "f:name": {}, "f:template": TEMPLATE}}
FIELDS = {"f:metadata": {"f:labels": {}}, "f:spec": {"f:replicatedJobs": JOBS, "f:suspend": {}}}


def stored(*records: dict[str, Any]) -> dict[str, Any]:
    """What the server has made of it, and what others have added."""
    spec = copy_of(APPLIED)
    spec["successPolicy"] = {"operator": "All"}
    spec["replicatedJobs"].append({"name": "theirs", "template": {}})
    job = spec["replicatedJobs"][0]
    job["groupName"] = "default"
    job["template"]["metadata"]["labels"]["c"] = "d"
    pods = job["template"]["spec"]["template"]["spec"]
    pods["restartPolicy"] = "OnFailure"
    pods["containers"][0]["ports"][0]["protocol"] = "TCP"
    pods["containers"][0]["env"].insert(0, {"name": "B"})
    pods["containers"].append({"name": "sidecar", "image": "theirs"})
    return {"metadata": {"managedFields": list(records)}, "spec": spec}


def record(**changes: str) -> dict[str, Any]:
    return {"manager": "trainer", "operation": "Apply", "fieldsV1": FIELDS, **changes}


def test_what_was_applied_should_be_found_among_what_there_is() -> None:
    others = (record(manager="other"), record(operation="Update"), record(subresource="status"))
    for each in others:
        each["fieldsV1"] = {"f:spec": {"f:successPolicy": {}}}
    assert applied_spec_of(stored(*others, record()), "trainer") == APPLIED


def test_what_is_recorded_but_gone_should_be_left_out() -> None:
    there = stored(record())
    del there["spec"]["suspend"]
    assert "suspend" not in applied_spec_of(there, "trainer")


def test_items_without_keys_should_be_known_by_themselves() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:names": {'v:"a"': {}, "v:1": {}}}}
    there = stored({**record(), "fieldsV1": fields})
    there["spec"]["names"] = ["b", "a", 1]
    assert applied_spec_of(there, "trainer") == {"names": ["a", 1]}


def test_who_has_applied_nothing_should_own_nothing() -> None:
    assert applied_spec_of(stored(record(manager="other")), "trainer") == {}


def test_without_records_all_should_count_as_applied() -> None:
    there = stored()
    assert applied_spec_of(there, "trainer") == there["spec"]
