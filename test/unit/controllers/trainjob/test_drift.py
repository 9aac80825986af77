from typing import Any

import pytest

from ktrainer.controllers.trainjob.drift import covers


@pytest.mark.parametrize(
    "present, wanted",
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, id="more fields"),
        pytest.param({"env": [{"name": "b"}, {"name": "a", "v": 1}]}, {"env": [{"name": "a"}]}, id="more named items"),
        pytest.param({"args": ["x"]}, {"args": ["x"]}, id="the same list"),
        pytest.param({}, {"labels": {}, "list": []}, id="empty is as good as none"),
    ],
)
def test_what_was_added_should_be_no_drift(present: Any, wanted: Any) -> None:
    assert covers(present, wanted)


@pytest.mark.parametrize(
    "present, wanted",
    [
        pytest.param({}, {"a": 1}, id="missing"),
        pytest.param({"a": 2}, {"a": 1}, id="another value"),
        pytest.param({"a": True}, {"a": 1}, id="another type"),
        pytest.param({"args": ["x", "y"]}, {"args": ["x"]}, id="a longer plain list"),
        pytest.param({"env": [{"name": "b"}]}, {"env": [{"name": "a"}]}, id="a missing item"),
        pytest.param({"a": "text"}, {"a": {"b": 1}}, id="no map"),
        pytest.param({"a": {}}, {"a": [1]}, id="no list"),
    ],
)
def test_what_is_missing_or_different_should_be_drift(present: Any, wanted: Any) -> None:
    assert not covers(present, wanted)
