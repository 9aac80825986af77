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
        pytest.param(expression("NotIn", key="c"), False, id="NotIn without values"),
        pytest.param({"matchLabels": {"a": "1"}, **expression("In", "2")}, False, id="all must hold"),
    ],
)
def test_labels_should_be_selected(selector: dict[str, Any], selected: bool) -> None:
    assert is_selected({"a": "1", "b": "1"}, selector) is selected


@pytest.mark.parametrize(
    ("selector", "paths"),
    [
        pytest.param({}, [], id="everything"),
        pytest.param({"matchLabels": {"kubernetes.io/metadata.name": "team-a", "b": ""}}, [], id="labels"),
        pytest.param(expression("In", "1", "A_b.c"), [], id="in"),
        pytest.param(expression("DoesNotExist"), [], id="DoesNotExist"),
        pytest.param({"matchLabels": {"a b": "1"}}, ["matchLabels"], id="no key of a label"),
        pytest.param({"matchLabels": {"a": "-"}}, ["matchLabels[a]"], id="no value"),
        pytest.param({"matchLabels": {"a": "x" * 64}}, ["matchLabels[a]"], id="a long value"),
        pytest.param(expression("notin", "1"), ["matchExpressions[0].operator"], id="no operator"),
        pytest.param(expression("NotIn"), ["matchExpressions[0].values"], id="NotIn nothing"),
        pytest.param(expression("In"), ["matchExpressions[0].values"], id="in nothing"),
        pytest.param(expression("Exists", "1"), ["matchExpressions[0].values"], id="exists with a value"),
        pytest.param(expression("In", "1", "a b"), ["matchExpressions[0].values[1]"], id="no value in a list"),
        pytest.param(expression("DoesNotExist", key="team "), ["matchExpressions[0].key"], id="no key"),
        pytest.param(expression("Exists", key="Acme.io/team"), ["matchExpressions[0].key"], id="no domain"),
        pytest.param(expression("Exists", key="/team"), ["matchExpressions[0].key"], id="an empty domain"),
    ],
)
def test_what_is_no_selector_should_be_refused_with_its_place(selector: dict[str, Any], paths: list[str]) -> None:
    assert [error.path.text for error in validate_selector(selector, Path("s"))] == [f"s.{path}" for path in paths]
