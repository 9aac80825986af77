from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.control.predicates import (
    Filtered,
    Predicate,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    negation_of,
)
from support.cases import cases
from support.informers import Recorder
from support.widgets import widget

SIMPLE: list[Predicate[CachedObject]] = [generation_changed, labels_changed, annotations_changed]

PREDICATES: st.SearchStrategy[Predicate[CachedObject]] = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: all_of(*each)),
        st.lists(inner, max_size=3).map(lambda each: any_of(*each)),
        inner.map(negation_of),
    ),
    max_leaves=6,
)

OBJECTS = st.builds(
    lambda generation, labels, annotations, version: widget(
        generation=generation, labels=labels, annotations=annotations, version=version
    ),
    st.integers(1, 2),
    st.dictionaries(st.just("l"), st.sampled_from("xy")),
    st.dictionaries(st.just("a"), st.sampled_from("xy")),
    st.integers(1, 3),
)


@pytest.mark.parametrize(
    ("predicate", "change"),
    [
        (generation_changed, {"generation": 2}),
        (labels_changed, {"labels": {"l": "y"}}),
        (annotations_changed, {"annotations": {"a": "y"}}),
    ],
)
def test_a_predicate_should_hold_for_its_change_alone(
    predicate: Callable[[CachedObject, CachedObject], bool], change: dict[str, Any]
) -> None:
    plain: dict[str, Any] = {"generation": 1, "labels": {"l": "x"}, "annotations": {"a": "x"}}
    old, new = widget(version=1, **plain), widget(version=2, **{**plain, **change})
    assert predicate(old, new)
    assert not predicate(old, widget(version=2, **plain))
    assert [each(old, new) for each in SIMPLE].count(True) == 1


@settings(max_examples=cases(2_000))
@given(PREDICATES, OBJECTS, OBJECTS)
def test_adds_deletes_and_resyncs_should_pass_every_predicate(
    predicate: Predicate[CachedObject], old: CachedObject, new: CachedObject
) -> None:
    recorder = Recorder()
    handler = Filtered(recorder, predicate)
    handler.on_add(old, True)
    handler.on_update(old, old)
    handler.on_delete(old, True)
    assert [what for what, _ in recorder.take()] == ["initial", "sync", "tombstone"]
    handler.on_add(old, False)
    handler.on_update(old, new)
    is_sync = old.metadata.resource_version == new.metadata.resource_version
    assert (len(recorder.take()) == 2) is (is_sync or predicate(old, new))


@settings(max_examples=cases(2_000))
@given(st.lists(PREDICATES, max_size=3), OBJECTS, OBJECTS)
def test_combinations_should_be_what_they_say(
    predicates: list[Predicate[CachedObject]], old: CachedObject, new: CachedObject
) -> None:
    answers = [predicate(old, new) for predicate in predicates]
    assert all_of(*predicates)(old, new) is all(answers)
    assert any_of(*predicates)(old, new) is any(answers)
    assert [negation_of(predicate)(old, new) for predicate in predicates] == [not answer for answer in answers]


def test_all_predicates_of_a_handler_should_have_to_hold() -> None:
    recorder = Recorder()
    handler = Filtered(recorder, generation_changed, labels_changed)
    old = widget(version=1, generation=1)
    recorder.on_add(old, False)
    handler.on_update(old, widget(version=2, generation=2))
    handler.on_update(old, widget(version=3, generation=1, labels={"l": "x"}))
    assert [what for what, _ in recorder.take()] == ["add"]
    handler.on_update(old, widget(version=4, generation=2, labels={"l": "x"}))
    assert [what for what, _ in recorder.take()] == ["update"]
