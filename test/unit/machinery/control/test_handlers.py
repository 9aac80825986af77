from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.control.handlers import EnqueueAnew, EnqueueForObject, EnqueueForOwner, MapFunc
from ktrainer.machinery.queue.workqueue import HIGH_PRIORITY, LOW_PRIORITY
from support.widgets import owners, widget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.machinery.cache.distribution import Handler
    from ktrainer.machinery.cache.objects import CachedObject

OWNERS = Resource("example.com", "v1", "Owner", "owners", namespaced=True)
CLUSTER_OWNERS = Resource("example.com", "v1", "Owner", "owners", namespaced=False)


@dataclass
class Keys:
    """The end of a queue that keys are put into."""

    added: list[tuple[str, int]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def forget(self, key: ObjectKey) -> None:
        self.forgotten.append(str(key))

    def add(self, key: ObjectKey, *, priority: int = 0) -> None:
        self.added.append((str(key), priority))

    def take(self) -> list[tuple[str, int]]:
        added, self.added = self.added, []
        return added


def labels_of(obj: CachedObject) -> Iterable[ObjectKey]:
    return [ObjectKey("", value) for value in obj.metadata.labels.values()]


@pytest.mark.parametrize("kind", ["object", "owner", "map"])
def test_what_nobody_waits_for_should_have_low_priority(kind: str) -> None:
    keys = Keys()
    handlers: dict[str, Handler[CachedObject]] = {
        "object": EnqueueForObject(keys),
        "owner": EnqueueForOwner(keys, OWNERS),
        "map": MapFunc(keys, labels_of),
    }
    handler = handlers[kind]
    old = widget(version=1, owner_references=owners("o"), labels={"l": "o"})
    same = widget(version=1, owner_references=owners("o"), labels={"l": "o"})
    new = widget(version=2, owner_references=owners("o"), labels={"l": "o"})
    handler.on_add(old, True)
    handler.on_update(old, same)
    handler.on_update(old, old)
    assert [priority for _, priority in keys.take()] == [LOW_PRIORITY] * 3
    handler.on_add(old, False)
    handler.on_update(old, new)
    handler.on_delete(new, False)
    handler.on_delete(new, True)
    assert [priority for _, priority in keys.take()] == [0] * 4


def test_an_object_should_be_enqueued_by_its_own_key() -> None:
    keys = Keys()
    handler = EnqueueForObject(keys)
    handler.on_add(widget("a", "ns"), False)
    handler.on_update(widget("a", "ns", version=1), widget("a", "ns", version=2))
    handler.on_delete(widget("a", "ns"), True)
    assert keys.take() == [("ns/a", 0)] * 3


def test_owners_should_be_found_by_group_and_kind_in_any_version() -> None:
    keys = Keys()
    handler = EnqueueForOwner(keys, OWNERS)
    references = (
        *owners("v1"),
        *owners("v2", api_version="example.com/v2"),
        *owners("other-group", api_version="example.org/v1"),
        *owners("other-kind", kind="Gadget"),
        *owners("core", api_version="v1"),
    )
    handler.on_add(widget(namespace="ns", owner_references=references), False)
    assert keys.take() == [("ns/v1", 0), ("ns/v2", 0)]


def test_an_owner_without_a_namespace_should_not_get_that_of_the_child() -> None:
    keys = Keys()
    EnqueueForOwner(keys, CLUSTER_OWNERS).on_delete(widget(namespace="ns", owner_references=owners("o")), False)
    assert keys.take() == [("o", 0)]


def test_only_the_controller_should_be_enqueued_where_that_is_asked_for() -> None:
    keys = Keys()
    EnqueueForOwner(keys, OWNERS, only_controller=True).on_add(widget(owner_references=owners("o", "p")), False)
    assert keys.take() == [("default/o", 0)]


def test_what_is_urgent_should_go_first_if_it_is_new() -> None:
    keys = Keys()
    handler = EnqueueForOwner(keys, OWNERS, is_urgent=lambda obj: obj.metadata.labels.get("end") == "yes")
    before = widget(version=1, owner_references=owners("o"))
    ended = widget(version=2, owner_references=owners("o"), labels={"end": "yes"})
    handler.on_update(before, before)
    handler.on_update(before, widget(version=2, owner_references=owners("o")))
    handler.on_update(before, ended)
    handler.on_update(ended, ended)
    assert [priority for _, priority in keys.take()] == [LOW_PRIORITY, 0, HIGH_PRIORITY, LOW_PRIORITY]


def test_an_update_should_enqueue_the_owners_of_before_and_after_once() -> None:
    keys = Keys()
    old = widget(version=1, owner_references=owners("o", "p"))
    new = widget(version=2, owner_references=owners("q", "p"))
    EnqueueForOwner(keys, OWNERS).on_update(old, new)
    assert keys.take() == [("default/o", 0), ("default/p", 0), ("default/q", 0)]
    EnqueueForOwner(keys, OWNERS).on_update(new, widget(version=3, owner_references=owners("q", "p")))
    assert keys.take() == [("default/q", 0), ("default/p", 0)]


def test_a_function_should_be_asked_for_before_and_after_and_each_key_be_added_once() -> None:
    keys = Keys()
    old, new = widget(version=1, labels={"a": "x", "b": "y"}), widget(version=2, labels={"a": "x", "b": "z"})
    MapFunc(keys, labels_of).on_update(old, new)
    assert keys.take() == [("x", 0), ("y", 0), ("z", 0)]


def test_a_changed_spec_should_not_wait_for_the_failures_of_the_old_one() -> None:
    keys = Keys()
    handler = EnqueueForObject(keys)
    old, labelled = widget(version=1, generation=1), widget(version=2, generation=1)
    handler.on_update(old, labelled)
    assert keys.forgotten == []
    handler.on_update(labelled, widget(version=3, generation=2))
    assert keys.forgotten == ["default/a"]


def test_keys_for_which_a_new_time_has_begun_should_forget_their_failures() -> None:
    keys = Keys()
    wake = EnqueueAnew(keys, lambda: [ObjectKey("ns", "a"), ObjectKey("ns", "b")])
    assert keys.take() == []
    wake()
    assert keys.take() == [("ns/a", LOW_PRIORITY), ("ns/b", LOW_PRIORITY)]
    assert keys.forgotten == ["ns/a", "ns/b"]


def test_an_object_that_comes_back_should_not_wait_for_the_failures_of_its_predecessor() -> None:
    keys = Keys()
    handler = EnqueueForObject(keys)
    handler.on_delete(widget("a"), True)
    assert keys.forgotten == ["default/a"]
    handler.on_add(widget("a"), False)
    assert keys.take() == [("default/a", 0)] * 2
