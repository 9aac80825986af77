from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ktrainer.kube.facts import ANYTHING, Facts, ObjectType, Shape, kubernetes_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

POD = kubernetes_facts().type_of("core.v1.PodSpec")


def test_merge_keys_and_list_types_should_be_known() -> None:
    containers = POD.fields["containers"]
    assert (containers.type, containers.strategies, containers.merge_key) == ("array", ("merge",), "name")
    assert (containers.list_type, containers.map_keys) == ("map", ("name",))
    assert containers.items == Shape(ref="core.v1.Container")
    assert POD.fields["volumes"].strategies == ("merge", "retainKeys")
    assert POD.fields["tolerations"].list_type == "atomic"
    assert POD.fields["nodeSelector"].map_type == "atomic"
    assert kubernetes_facts().type_of("meta.v1.LabelSelector").map_type == "atomic"
    ports = kubernetes_facts().type_of("core.v1.Container").fields["ports"]
    assert (ports.merge_key, ports.map_keys) == ("containerPort", ("containerPort", "protocol"))


def test_types_should_be_known_well_enough_for_a_schema() -> None:
    assert POD.required == ("containers",)
    assert POD.fields["activeDeadlineSeconds"] == Shape(type="integer", format="int64")
    assert POD.fields["overhead"] == Shape(type="map", values=Shape(type="quantity"))
    assert POD.fields["affinity"] == Shape(ref="core.v1.Affinity")
    assert kubernetes_facts().type_of("core.v1.HTTPGetAction").fields["port"] == Shape(type="int-or-string")
    meta = kubernetes_facts().type_of("meta.v1.ObjectMeta").fields
    assert meta["creationTimestamp"] == Shape(type="string", format="date-time")
    assert meta["labels"] == Shape(type="map", values=Shape(type="string"))
    assert kubernetes_facts().type_of("core.v1.Secret").fields["data"].values == Shape(type="string", format="byte")
    assert kubernetes_facts().type_of("core.v1.Secret").fields["kind"].enum == ("Secret",)


def test_a_list_that_merges_by_a_key_should_hold_objects_with_that_field() -> None:
    for shape in all_shapes():
        if shape.merge_key:
            assert shape.items is not None
            assert shape.merge_key in kubernetes_facts().type_of(shape.items.ref).fields
        for key in shape.map_keys:
            assert shape.items is not None
            assert key in kubernetes_facts().type_of(shape.items.ref).fields


def all_shapes() -> Iterator[Shape]:
    waiting, seen = ["core.v1.Pod", "batch.v1.Job"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for shape in kubernetes_facts().type_of(name).fields.values():
            yield shape
            inner = shape.items or shape.values or shape
            if inner.ref:
                waiting.append(inner.ref)


def test_a_child_should_be_found_in_types_and_in_maps() -> None:
    facts = kubernetes_facts()
    pod = Shape(ref="core.v1.PodSpec")
    assert facts.child_of(pod, "containers") is POD.fields["containers"]
    assert facts.child_of(pod, "unheard-of") is ANYTHING
    assert facts.child_of(POD.fields["overhead"], "cpu") == Shape(type="quantity")
    assert facts.child_of(ANYTHING, "x") is ANYTHING


def test_more_types_should_be_added_without_changing_the_known_ones() -> None:
    more = {"mine.Job": ObjectType(fields={"template": Shape(ref="core.v1.PodTemplateSpec")})}
    extended = kubernetes_facts().extended_with(more)
    assert extended.type_of("mine.Job") is more["mine.Job"]
    assert extended.type_of("core.v1.PodSpec") is POD
    with pytest.raises(KeyError):
        kubernetes_facts().type_of("mine.Job")


def test_a_type_should_not_be_defined_twice() -> None:
    with pytest.raises(ValueError, match=r"already defined: core\.v1\.PodSpec"):
        kubernetes_facts().extended_with({"core.v1.PodSpec": ObjectType(fields={})})


@pytest.mark.parametrize(
    "shape",
    [
        Shape(ref="lost"),
        Shape(type="array", items=Shape(ref="lost")),
        Shape(type="map", values=Shape(type="array", items=Shape(ref="lost"))),
    ],
)
def test_a_reference_that_leads_nowhere_should_be_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match="the field f of T is of an unknown type: lost"):
        Facts({"T": ObjectType(fields={"f": shape})})
