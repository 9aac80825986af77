from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.kube.facts import ObjectType, Shape, kubernetes_facts
from ktrainer.kube.jsonvalue import are_same, copy_of
from ktrainer.kube.strategicmerge import MergeError, merge
from support.cases import cases
from support.jsonvalues import OBJECTS

POD = "core.v1.PodSpec"
CONTAINER = "core.v1.Container"
META = "meta.v1.ObjectMeta"

KEYLESS = "an item of this list needs the field name"
DISORDER = "the items of the patch are not in the order of its $setElementOrder"


@dataclass(frozen=True)
class Case:
    id: str
    type_name: str
    original: dict[str, Any]
    patch: dict[str, Any]
    expected: dict[str, Any]


def names(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


# Each was compared with what apimachinery makes of it.
CASES = [
    Case(
        "maps merge", META, {"labels": {"a": "1", "b": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}
    ),
    Case(
        "null deletes",
        META,
        {"labels": {"a": "1", "b": "1"}, "uid": "u"},
        {"labels": {"b": None}, "uid": None},
        {"labels": {"a": "1"}},
    ),
    Case("null of nothing", META, {}, {"labels": {"a": None, "b": "1"}, "uid": None}, {"labels": {"b": "1"}}),
    Case("scalars replace", POD, {"hostname": "a", "priority": 1}, {"hostname": "b"}, {"hostname": "b", "priority": 1}),
    Case("a map in the place of a scalar", META, {"labels": "odd"}, {"labels": {"a": "1"}}, {"labels": {"a": "1"}}),
    Case(
        "items merge by key",
        POD,
        {"containers": [{"name": "a", "image": "x", "args": ["1"]}]},
        {"containers": [{"name": "a", "image": "y"}]},
        {"containers": [{"name": "a", "image": "y", "args": ["1"]}]},
    ),
    Case(
        "items of items merge by key",
        POD,
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "Z", "value": "2"}]}]},
        {"containers": [{"name": "a", "env": [{"name": k, "value": v} for k, v in ("X1", "Y2", "Z2")]}]},
    ),
    Case(
        "mounts merge by path",
        CONTAINER,
        {"volumeMounts": [{"mountPath": "/a", "name": "v"}]},
        {"volumeMounts": [{"mountPath": "/a", "readOnly": True}, {"mountPath": "/b", "name": "v"}]},
        {"volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": True}, {"mountPath": "/b", "name": "v"}]},
    ),
    Case(
        "ports merge by number",
        CONTAINER,
        {"ports": [{"containerPort": 80, "name": "http"}]},
        {"ports": [{"containerPort": 80, "protocol": "UDP"}]},
        {"ports": [{"containerPort": 80, "name": "http", "protocol": "UDP"}]},
    ),
    Case(
        "atomic lists replace",
        POD,
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    Case("arguments replace", CONTAINER, {"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
    Case("an empty atomic list empties", CONTAINER, {"args": ["a"]}, {"args": []}, {"args": []}),
    Case("an empty merging list does nothing", POD, {"volumes": names("a")}, {"volumes": []}, {"volumes": names("a")}),
    Case(
        "new items come first",
        POD,
        {"imagePullSecrets": names("a", "b")},
        {"imagePullSecrets": names("x", "y")},
        {"imagePullSecrets": names("x", "y", "a", "b")},
    ),
    Case(
        "the order is the patch's, with others before what they stood before",
        POD,
        {"imagePullSecrets": names("a", "b", "c", "d", "e")},
        {"imagePullSecrets": names("d", "x", "b")},
        {"imagePullSecrets": names("a", "c", "d", "x", "b", "e")},
    ),
    Case(
        "sets of scalars",
        META,
        {"finalizers": ["a", "b", "c"]},
        {"finalizers": ["c", "x"]},
        {"finalizers": ["a", "b", "c", "x"]},
    ),
    Case(
        "an item is deleted",
        POD,
        {"volumes": names("a", "b", "c")},
        {"volumes": [{"name": "b", "$patch": "delete"}]},
        {"volumes": names("a", "c")},
    ),
    Case(
        "what is not there is deleted",
        POD,
        {"volumes": names("a")},
        {"volumes": [{"name": "b", "$patch": "delete"}]},
        {"volumes": names("a")},
    ),
    Case(
        "an item is deleted and made anew",
        POD,
        {"containers": [{"name": "a", "image": "x", "tty": True}]},
        {"containers": [{"name": "a", "$patch": "delete"}, {"name": "a", "image": "y"}]},
        {"containers": [{"name": "a", "image": "y"}]},
    ),
    Case(
        "a list is replaced",
        POD,
        {"volumes": names("a", "b")},
        {"volumes": [*names("b", "c"), {"$patch": "replace"}]},
        {"volumes": names("b", "c")},
    ),
    Case(
        "a map is replaced",
        POD,
        {"securityContext": {"runAsUser": 1, "fsGroup": 2}},
        {"securityContext": {"$patch": "replace", "fsGroup": 3}},
        {"securityContext": {"fsGroup": 3}},
    ),
    Case(
        "a map is emptied",
        POD,
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"$patch": "delete"}},
        {"nodeSelector": {}},
    ),
    Case(
        "directives for nothing",
        POD,
        {},
        {"volumes": [*names("a"), {"name": "b", "$patch": "delete"}], "dnsConfig": {"$patch": "delete"}},
        {"volumes": names("a")},
    ),
    Case(
        "keys are retained",
        POD,
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    ),
    Case(
        "without that directive both sources stay",
        POD,
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
    ),
    Case(
        "scalars are deleted",
        META,
        {"finalizers": ["a", "b", "c"]},
        {"$deleteFromPrimitiveList/finalizers": ["b", "x"]},
        {"finalizers": ["a", "c"]},
    ),
    Case(
        "scalars are deleted and added",
        META,
        {"finalizers": ["a", "b"]},
        {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["c", "b"]},
    ),
    Case("deleting from no list", META, {"uid": "u"}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"uid": "u"}),
    Case(
        "an order is set",
        POD,
        {"volumes": names("a", "b", "c")},
        {"$setElementOrder/volumes": names("c", "a")},
        {"volumes": names("b", "c", "a")},
    ),
    Case(
        "an order is set for what is merged",
        POD,
        {"volumes": names("a", "b")},
        {"volumes": names("x"), "$setElementOrder/volumes": names("b", "x", "a")},
        {"volumes": names("b", "x", "a")},
    ),
    Case(
        "an order is set for what is new",
        META,
        {},
        {"finalizers": ["a", "b"], "$setElementOrder/finalizers": ["a", "b"]},
        {"finalizers": ["a", "b"]},
    ),
    Case("an order is set for nothing", META, {}, {"$setElementOrder/finalizers": ["a"]}, {}),
    Case(
        "twins stay beside each other",
        CONTAINER,
        {"env": [{"name": "X", "value": "1"}, {"name": "Y"}, {"name": "X", "value": "2"}]},
        {"env": [{"name": "X", "value": "3"}]},
        {"env": [{"name": "X", "value": "3"}, {"name": "X", "value": "2"}, {"name": "Y"}]},
    ),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_a_patch_should_merge_as_in_kubernetes(case: Case) -> None:
    original, patch = copy_of(case.original), copy_of(case.patch)
    assert merge(case.original, case.patch, case.type_name) == case.expected
    assert are_same([original, patch], [case.original, case.patch])


def test_the_result_should_share_nothing_with_the_inputs() -> None:
    original = {"volumes": [{"name": "a", "secret": {"items": [{"key": "k"}]}}], "tolerations": [{"key": "t"}]}
    patch = {
        "volumes": [{"name": "b", "secret": {"items": [{"key": "k"}]}}],
        "hostAliases": [{"ip": "1", "hostnames": ["h"]}],
    }
    before = copy_of([original, patch])
    result = merge(original, patch, POD)
    for volume in result["volumes"]:
        volume["secret"]["items"][0]["key"] = "changed"
    result["tolerations"][0]["key"] = result["hostAliases"][0]["hostnames"][0] = "changed"
    assert [original, patch] == before


@pytest.mark.parametrize(
    "patch, message",
    [
        ({"containers": [{"image": "x"}]}, f"containers[0]: {KEYLESS}"),
        ({"containers": [{"name": "a"}, {"name": None}]}, f"containers[1]: {KEYLESS}"),
        ({"containers": [{"name": {}}]}, "containers[0].name: not a scalar"),
        ({"containers": ["a"]}, f"containers[0]: {KEYLESS}"),
        ({"containers": [{"name": "a", "env": [{"value": "x"}]}]}, f"containers[0].env[0]: {KEYLESS}"),
        ({"containers": [{"$patch": "delete"}]}, f"containers[0]: {KEYLESS}"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, "containers[0]: unknown directive $patch: 'merge'"),
        ({"$patch": "merge"}, "unknown directive $patch: 'merge'"),
        ({"dnsConfig": {"$patch": 5}}, "dnsConfig: unknown directive $patch: 5"),
        (
            {"securityContext": {"fsGroup": 1, "$retainKeys": ["runAsUser"]}},
            "securityContext.fsGroup: set by the patch, but not among its $retainKeys",
        ),
        ({"securityContext": {"$retainKeys": "fsGroup"}}, "securityContext.$retainKeys: not a list"),
        ({"$setElementOrder": []}, "$setElementOrder: the directive names no field"),
        ({"$setElementOrder/containers": "a"}, "containers: not a list"),
        ({"containers": names("x", "a"), "$setElementOrder/containers": names("a", "x")}, f"containers: {DISORDER}"),
        ({"containers": names("x"), "$setElementOrder/containers": names("a")}, f"containers: {DISORDER}"),
        ({"$setElementOrder/tolerations": names("a")}, "tolerations[0]: not a scalar"),
        ({"$deleteFromPrimitiveList/containers": ["a"]}, "containers[0]: not a scalar"),
        ({"$deleteFromPrimitiveList/tolerations": 5}, "tolerations: not a list"),
    ],
)
def test_a_patch_that_does_not_fit_should_be_refused_with_its_path(patch: dict[str, Any], message: str) -> None:
    original = {"containers": [{"name": "a", "env": []}], "securityContext": {}, "tolerations": [{"key": "k"}]}
    with pytest.raises(MergeError) as failure:
        merge(original, patch, POD)
    assert str(failure.value) == message


def test_an_original_without_a_merge_key_should_be_refused() -> None:
    with pytest.raises(MergeError, match=r"^volumes\[0\]: an item of this list needs the field name$"):
        merge({"volumes": [{}]}, {"volumes": names("a")}, POD)


def test_maps_in_a_list_of_scalars_should_be_refused() -> None:
    with pytest.raises(MergeError, match=r"^finalizers: the items of this list have no key to merge by$"):
        merge({"finalizers": ["a"]}, {"finalizers": [{}]}, META)


def test_items_of_different_types_should_not_be_taken_for_each_other() -> None:
    assert are_same(merge({"finalizers": [1]}, {"finalizers": [True, "1"]}, META), {"finalizers": [True, "1", 1]})


def test_an_unknown_type_should_be_refused() -> None:
    with pytest.raises(KeyError):
        merge({}, {}, "core.v1.Nothing")


def test_a_replacement_should_lose_the_directives_and_nulls_inside() -> None:
    inside = {
        "uid": None,
        "labels": {"a": None},
        "annotations": {"$patch": "delete"},
        "$retainKeys": ["uid"],
        "$setElementOrder/x": [],
    }
    expected: dict[str, Any] = {"labels": {}}
    assert merge({"uid": "u"}, {"$patch": "replace", **inside}, META) == expected
    assert merge({}, {"metadata": inside}, "core.v1.Pod") == {"metadata": expected}
    assert merge({}, {"metadata": {"$patch": "replace", **inside}}, "core.v1.Pod") == {"metadata": expected}


def test_a_replaced_list_should_keep_the_twins_of_the_patch() -> None:
    twins = [{"name": "X", "value": "1"}, {"name": "Y"}, {"name": "X", "value": "2"}]
    assert merge({"env": names("Z")}, {"env": [{"$patch": "replace"}, *twins]}, CONTAINER) == {"env": twins}


def test_null_items_of_a_replaced_list_should_stay() -> None:
    assert merge({}, {"args": ["a", None]}, CONTAINER) == {"args": ["a", None]}


JOBSET = kubernetes_facts().extended_with(
    {
        "Spec": ObjectType(
            fields={
                "replicatedJobs": Shape(
                    type="array", items=Shape(ref="Job"), strategies=("merge",), merge_key="name", list_type="map"
                ),
                "policy": Shape(type="object", strategies=("replace",)),
            }
        ),
        "Job": ObjectType(fields={"name": Shape(type="string"), "template": Shape(ref="batch.v1.JobTemplateSpec")}),
    }
)


def test_types_of_others_should_merge_by_the_facts_that_are_given() -> None:
    def jobs(name: str, container: dict[str, Any]) -> dict[str, Any]:
        pod = {"spec": {"containers": [container]}}
        return {"replicatedJobs": [{"name": name, "template": {"spec": {"template": pod}}}]}

    merged = merge(jobs("node", {"name": "a", "image": "x"}), jobs("node", {"name": "a", "tty": True}), "Spec", JOBSET)
    assert merged == jobs("node", {"name": "a", "image": "x", "tty": True})
    both = merge(jobs("node", {"name": "a"}), jobs("launcher", {"name": "a"}), "Spec", JOBSET)
    assert [job["name"] for job in both["replicatedJobs"]] == ["launcher", "node"]


def test_a_map_may_be_defined_to_be_replaced() -> None:
    assert merge({"policy": {"a": 1}}, {"policy": {"b": 2}}, "Spec", JOBSET) == {"policy": {"b": 2}}


def test_unknown_fields_should_pass_and_merge_as_json() -> None:
    original = {"new": {"a": [1], "b": 1}, "other": [1]}
    assert merge(original, {"new": {"a": [2], "c": {"d": 1}}}, POD) == {
        "new": {"a": [2], "b": 1, "c": {"d": 1}},
        "other": [1],
    }


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@settings(max_examples=cases(2_000))
@given(NAMES, NAMES)
def test_the_order_of_a_merged_list_should_follow_its_law(original: list[str], patch: list[str]) -> None:
    rank = {name: index for index, name in enumerate(original)}
    expected: list[str] = []
    kept = [name for name in original if name not in patch]
    for patched in patch:
        expected += [name for name in kept if name not in expected and rank[name] < rank.get(patched, -1)] + [patched]
    expected += [name for name in kept if name not in expected]
    assert merge({"volumes": names(*original)}, {"volumes": names(*patch)}, POD) == {"volumes": names(*expected)}
    assert merge({"finalizers": original}, {"finalizers": patch}, META) == {"finalizers": expected}


@settings(max_examples=cases(2_000))
@given(OBJECTS, OBJECTS)
def test_merging_twice_should_change_no_more(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge(original, patch, POD)
    assert are_same(merge(once, patch, POD), once)
    assert are_same(merge(original, {}, POD), original)
