import pytest

from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.store import Store
from support.mutation import unmutated
from support.widgets import widget


def test_writing_into_a_cached_object_should_be_caught() -> None:
    store = Store[CachedObject]({})
    obj = widget(labels={"l": "x"})
    store.put(obj.key, obj)
    with unmutated(store):
        store.put(obj.key, widget(labels={"l": "y"}))
    with pytest.raises(AssertionError, match="default/a"), unmutated(store):
        store.list()[0].metadata.labels["l"] = "z"
