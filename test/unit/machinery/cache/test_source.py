from ktrainer.client.selectors import Selectors
from ktrainer.kube.identity import Resource
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from support.modelserver import WIDGETS

NODES = Resource("", "v1", "Node", "nodes", namespaced=False)


def test_views_that_differ_should_have_names_that_differ() -> None:
    views = [
        View(WIDGETS, CachedObject),
        View(WIDGETS, CachedObject, namespace="ns"),
        View(WIDGETS, CachedObject, selectors=Selectors(labels="a=b")),
        View(WIDGETS, CachedObject, selectors=Selectors(fields="a=b")),
        View(WIDGETS, CachedObject, metadata_only=True),
        View(NODES, CachedObject),
    ]
    assert len({view.name for view in views}) == len(set(views)) == len(views)
    assert [views[0].name, views[1].name, views[-1].name] == [
        "widgets.example.com",
        "widgets.example.com namespace=ns",
        "nodes",
    ]


def test_views_of_the_same_objects_should_be_equal() -> None:
    assert View(WIDGETS, CachedObject) == View(WIDGETS, CachedObject, is_optional=True, indexers={"a": lambda _: ()})
    assert View(NODES, CachedObject, namespace="ns") == View(NODES, CachedObject)
