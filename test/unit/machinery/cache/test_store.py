from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.store import Store
from support.cases import cases
from support.jsonvalues import VALUES
from support.widgets import widget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.kube.identity import ObjectKey

NAMESPACES = ("", "x", "y")
LABELS = ("l", "m")


def by_labels(obj: CachedObject) -> Iterable[str]:
    """Every value twice, to show that it counts once; and one object that it chokes on."""
    if "bad" in obj.metadata.labels.values():
        raise ValueError("bad")
    return [*obj.metadata.labels.values()] * 2


def by_name(obj: CachedObject) -> Iterable[str]:
    return (obj.metadata.name,)


def filled(store: Store[CachedObject], *objects: CachedObject) -> Store[CachedObject]:
    for obj in objects:
        store.put(obj.key, obj)
    return store


def test_a_store_should_return_what_was_put_last() -> None:
    first, second = widget(version=1), widget(version=2)
    store: Store[CachedObject] = Store({})
    assert store.put(first.key, first) is None
    assert store.put(second.key, second) is first
    assert store.get(first.key) is second
    assert (len(store), store.list(), store.keys()) == (1, (second,), (first.key,))
    assert store.remove(first.key) is second
    assert store.remove(first.key) is None
    assert (store.get(first.key), store.list()) == (None, ())


def test_lists_should_be_of_a_namespace_or_of_all() -> None:
    objects = [widget("a", "x"), widget("a", "y"), widget("b", "x")]
    store = filled(Store({}), *objects)
    assert store.list() == tuple(objects)
    assert store.list("x") == (objects[0], objects[2])
    assert store.list("z") == ()


def test_an_index_should_find_by_value_in_a_namespace_or_in_all() -> None:
    objects = [widget("a", "x", labels={"l": "1"}), widget("b", "y", labels={"l": "1", "m": "2"})]
    store = filled(Store({"labels": by_labels}), *objects)
    assert store.by_index("labels", "1") == tuple(objects)
    assert store.by_index("labels", "1", "y") == (objects[1],)
    assert store.by_index("labels", "2", "x") == ()
    assert store.by_index("labels", "3") == ()
    assert [store.count_by_index("labels", value) for value in "123"] == [
        len(objects),
        len(store.by_index("labels", "2")),
        0,
    ]
    with pytest.raises(KeyError):
        store.by_index("names", "a")


def test_an_index_that_comes_late_should_know_everything() -> None:
    store = filled(Store({}), widget("a"), widget("b"))
    replacement = store.prepare()
    obj = widget("c")
    replacement.put(obj.key, obj)
    store.add_index("names", by_name)
    assert [found.metadata.name for found in store.by_index("names", "b")] == ["b"]
    store.replace(replacement, "9")
    assert store.by_index("names", "c") == (obj,)
    store.add_index("names", by_name)
    with pytest.raises(ValueError, match="names"):
        store.add_index("names", by_labels)


def test_an_object_that_an_index_chokes_on_should_be_in_the_store_and_said_once() -> None:
    with capture_logs() as logs:
        store = filled(Store({"labels": by_labels}), widget(labels={"l": "bad"}), widget(labels={"m": "bad"}))
        assert store.list()
        assert store.by_index("labels", "bad") == ()
        obj = widget(labels={"l": "good"})
        store.put(obj.key, obj)
    assert store.by_index("labels", "good") == (obj,)
    assert [entry["log_level"] for entry in logs] == ["error"]


def test_the_version_should_only_go_back_with_everything_replaced() -> None:
    store = filled(Store({}), widget("a", version=99), widget("b", version=100), widget("c", version=98))
    assert store.resource_version == "100"
    store.advance("")
    store.advance("odd")
    store.advance("101")
    assert store.resource_version == "101"
    store.replace(store.prepare(), "7")
    assert store.resource_version == "7"
    assert store.list() == ()


def test_a_replacement_should_not_show_before_it_is_complete() -> None:
    former = widget("a")
    store = filled(Store({"names": by_name}), former)
    contents = store.prepare()
    obj = widget("b")
    contents.put(obj.key, obj)
    assert store.list() == (former,)
    assert store.by_index("names", "b") == ()
    assert store.replace(contents, "5") == {former.key: former}
    assert store.list() == (obj,)
    assert store.by_index("names", "a") == ()


CHANGES = st.tuples(
    st.sampled_from(["put", "put", "remove", "replace", "index"]),
    st.sampled_from(NAMESPACES),
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from(LABELS), st.sampled_from(["1", "2", "bad"])),
)


@settings(max_examples=cases(2_000))
@given(st.lists(CHANGES, max_size=30))
def test_an_index_should_equal_one_that_is_computed_anew(
    changes: list[tuple[str, str, str, dict[str, str]]],
) -> None:
    with capture_logs():
        check_index(changes)


def check_index(changes: list[tuple[str, str, str, dict[str, str]]]) -> None:
    store: Store[CachedObject] = Store({"labels": by_labels})
    expected: dict[ObjectKey, CachedObject] = {}
    for version, (change, namespace, name, labels) in enumerate(changes, 1):
        obj = widget(name, namespace, version=version, labels=labels)
        match change:
            case "put":
                assert store.put(obj.key, obj) is expected.get(obj.key)
                expected[obj.key] = obj
            case "remove":
                assert store.remove(obj.key) is expected.pop(obj.key, None)
            case "replace":
                contents = store.prepare()
                contents.put(obj.key, obj)
                store.replace(contents, str(version))
                expected = {obj.key: obj}
            case "index":
                store.add_index("names", by_name)
        fresh = filled(Store({"labels": by_labels}), *expected.values())
        assert dict(zip(store.keys(), store.list(), strict=True)) == expected
        for value in ("1", "2", "bad"):
            for where in NAMESPACES:
                found, wanted = store.by_index("labels", value, where), fresh.by_index("labels", value, where)
                assert sorted(each.key for each in found) == sorted(each.key for each in wanted)
                assert all(each is expected[each.key] for each in found)


@settings(max_examples=cases(2_000))
@given(VALUES)
def test_whatever_is_done_to_what_was_returned_should_not_reach_the_store(spec: object) -> None:
    store = filled(Store({"names": by_name}), widget("a", spec=spec), widget("b", spec=spec))
    for obj in (*store.list(), *store.by_index("names", "a")):
        mutate(decoded(obj.spec))
    for obj in store.list():
        assert decoded(obj.spec) == spec
    with pytest.raises((AttributeError, TypeError)):
        store.list().append(widget("c"))  # type: ignore[attr-defined]


def mutate(value: object) -> None:
    if isinstance(value, list):
        for item in value:
            mutate(item)
        value.append("more")
    elif isinstance(value, dict):
        for item in value.values():
            mutate(item)
        value["more"] = "more"
