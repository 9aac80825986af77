from typing import Any

import pytest

from ktrainer.kube.fields import Path
from ktrainer.runtime.selector import is_selected, validate_selector


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


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        ({}, []),
        ({"matchLabels": {"a": "1"}, "matchExpressions": None}, []),
        (expression("In", "1"), []),
        (expression("Exists"), []),
        (
            expression("in", "1"),
            ['operator: Unsupported value: "in": supported values: "In", "NotIn", "Exists", "DoesNotExist"'],
        ),
        (expression("NotIn"), ["values: Required value: the operator is NotIn"]),
        (expression("DoesNotExist", "1"), ["values: Forbidden: the operator is DoesNotExist"]),
    ],
)
def test_requirements_that_make_no_sense_should_be_told(selector: dict[str, Any], errors: list[str]) -> None:
    found = validate_selector(selector, Path("spec.allowedNamespaces"))
    assert list(map(str, found)) == [f"spec.allowedNamespaces.matchExpressions[0].{error}" for error in errors]
