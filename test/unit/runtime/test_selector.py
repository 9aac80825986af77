from typing import Any

import pytest

from ktrainer.runtime.selector import is_selected


def expression(operator: str, *values: str, key: str = "a") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        pytest.param({}, True, id="everything"),
        pytest.param({"matchLabels": {"a": "1"}}, True, id="label"),
        pytest.param({"matchLabels": {"a": "2"}}, False, id="another value"),
        pytest.param({"matchLabels": {"a": "1", "c": "1"}}, False, id="one of two labels"),
        pytest.param(expression("In", "1", "2"), True, id="in"),
        pytest.param(expression("In", "2"), False, id="not in"),
        pytest.param(expression("In", "1", key="c"), False, id="absent is in nothing"),
        pytest.param(expression("NotIn", "2"), True, id="NotIn"),
        pytest.param(expression("NotIn", "1"), False, id="NotIn, but in"),
        pytest.param(expression("NotIn", "1", key="c"), True, id="absent is not in"),
        pytest.param(expression("Exists"), True, id="exists"),
        pytest.param(expression("Exists", key="c"), False, id="does not exist"),
        pytest.param(expression("DoesNotExist", key="c"), True, id="DoesNotExist"),
        pytest.param(expression("DoesNotExist"), False, id="DoesNotExist, but exists"),
        pytest.param(expression("Like", "1"), False, id="an operator that does not exist"),
        pytest.param({"matchLabels": {"a": "1"}, **expression("In", "2")}, False, id="all must hold"),
    ],
)
def test_labels_should_be_selected(selector: dict[str, Any], selected: bool) -> None:
    assert is_selected({"a": "1", "b": "1"}, selector) is selected
