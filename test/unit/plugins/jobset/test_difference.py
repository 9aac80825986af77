from typing import Any

import pytest

from ktrainer.kube.jsonvalue import copy_of
from ktrainer.plugins.jobset.difference import SHOWN, differences, told

WANTED: dict[str, Any] = {
    "suspend": True,
    "failurePolicy": {"maxRestarts": 1},
    "replicatedJobs": [
        {
            "name": "node",
            "replicas": 1,
            "template": {
                "spec": {
                    "parallelism": 2,
                    "template": {
                        "spec": {
                            "containers": [
                                {"name": "node", "env": [{"name": "A", "value": ""}], "ports": [{"containerPort": 1}]}
                            ],
                            "tolerations": [{"key": "gpu"}],
                        }
                    },
                }
            },
        }
    ],
}


def as_stored(wanted: dict[str, Any]) -> dict[str, Any]:
    """What JobSet 0.12 makes of it."""
    spec: dict[str, Any] = copy_of(wanted)
    spec["network"] = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    spec["startupPolicy"] = {"startupPolicyOrder": "AnyOrder"}
    spec["successPolicy"] = {"operator": "All"}
    spec["failurePolicy"]["restartStrategy"] = "Recreate"
    (job,) = spec["replicatedJobs"]
    job["groupName"] = "default"
    job["template"]["metadata"] = {}
    job["template"]["spec"]["completionMode"] = "Indexed"
    pods = job["template"]["spec"]["template"]
    pods["metadata"] = {}
    pods["spec"].setdefault("restartPolicy", "OnFailure")
    container = pods["spec"]["containers"][0]
    container["resources"] = {}
    container["ports"][0]["protocol"] = "TCP"
    return spec


def pods_of(spec: dict[str, Any]) -> dict[str, Any]:
    pods: dict[str, Any] = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pods


def test_what_the_server_adds_by_itself_should_be_no_difference() -> None:
    assert list(differences(as_stored(WANTED), WANTED)) == []
    assert list(differences(WANTED, as_stored(WANTED))) == []


PODS = "spec.replicatedJobs[node].template.spec.template.spec"


@pytest.mark.parametrize(
    "change, path",
    [
        pytest.param({"affinity": {"a": {"b": 1}}}, f"{PODS}.affinity", id="a field"),
        pytest.param({"volumes": [{"name": "v"}]}, f"{PODS}.volumes", id="an item with a name"),
        pytest.param(
            {"containers": [*pods_of(WANTED)["containers"], {"name": "more", "image": "i"}]},
            f"{PODS}.containers[more]",
            id="one more item",
        ),
        pytest.param({"tolerations": [{"key": "cpu"}]}, f"{PODS}.tolerations[0].key", id="an item without one"),
        pytest.param({"hostNetwork": True}, f"{PODS}.hostNetwork", id="a value"),
        pytest.param({"restartPolicy": "Never"}, f"{PODS}.restartPolicy", id="not the default"),
        pytest.param({"priority": 1}, f"{PODS}.priority", id="a number"),
    ],
)
def test_a_difference_should_be_found_on_either_side(change: dict[str, Any], path: str) -> None:
    other = copy_of(WANTED)
    pods_of(other).update(change)
    assert list(differences(as_stored(WANTED), other)) == [path]
    assert list(differences(as_stored(other), WANTED)) == [path]


def test_true_should_not_be_one() -> None:
    assert list(differences({"a": True}, {"a": 1})) == ["spec.a"]


def test_only_the_first_differences_should_be_told() -> None:
    names = [f"f{number}" for number in range(SHOWN + 1)]
    assert told(iter(names)) == "f0, f1, f2, f3, f4, and more"
    assert told(iter(names[:2])) == "f0, f1"
    assert told(iter(())) == ""
