from __future__ import annotations

import pytest

from ktrainer.kube.identity import GroupKind, GroupVersionKind
from ktrainer.kube.meta import ObjectMeta, OwnerReference
from ktrainer.kube.owners import build_controller_reference, controller_of, is_controlled_by, owners_of

JOB = OwnerReference("batch/v1beta1", "Job", "train", "u-1", controller=True)
FRIEND = OwnerReference("batch/v1", "Job", "friend", "u-2")
OTHER = OwnerReference("other.io/v1", "Job", "namesake", "u-3")
CHILD = ObjectMeta(name="child", owner_references=(OTHER, FRIEND, JOB))


def test_the_controller_should_be_told_from_other_owners() -> None:
    assert controller_of(CHILD) is JOB
    assert controller_of(ObjectMeta(owner_references=(FRIEND,))) is None


def test_control_should_go_by_uid() -> None:
    assert is_controlled_by(CHILD, "u-1")
    assert not is_controlled_by(CHILD, "u-2")
    assert not is_controlled_by(ObjectMeta(), "")


def test_owners_should_match_by_group_and_kind_in_any_version() -> None:
    assert owners_of(CHILD, GroupKind("batch", "Job")) == (FRIEND, JOB)
    assert owners_of(CHILD, GroupKind("batch", "Job"), only_controller=True) == (JOB,)
    assert owners_of(CHILD, GroupKind("", "Job")) == ()


def test_a_child_should_name_its_controller_and_block_its_deletion() -> None:
    owner = ObjectMeta(name="train", namespace="team", uid="u-1")
    assert build_controller_reference(GroupVersionKind("batch", "v1", "Job"), owner) == OwnerReference(
        "batch/v1", "Job", "train", "u-1", controller=True, block_owner_deletion=True
    )


def test_an_object_that_was_never_created_should_own_nothing() -> None:
    with pytest.raises(ValueError, match="Job team/train has no uid"):
        build_controller_reference(GroupVersionKind("batch", "v1", "Job"), ObjectMeta(name="train", namespace="team"))
