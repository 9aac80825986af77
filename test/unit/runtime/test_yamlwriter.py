from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.api.yamltext import parse_documents
from ktrainer.runtime.yamlwriter import to_yaml
from support.cases import cases


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"a": 1, "b": {"c": True, "d": None}}, "a: 1\nb:\n  c: true\n  d: null\n", id="maps"),
        pytest.param({"a": [1, {"b": 2, "c": 3}]}, "a:\n- 1\n- b: 2\n  c: 3\n", id="lists are not indented"),
        pytest.param({"a": [[1, 2], [{"b": [3]}]]}, "a:\n- - 1\n  - 2\n- - b:\n    - 3\n", id="lists of lists"),
        pytest.param({"a": {}, "b": [], "c": ""}, 'a: {}\nb: []\nc: ""\n', id="empty"),
        pytest.param({"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="a text of several lines"),
        pytest.param({"a": "x\n\ny"}, "a: |-\n  x\n\n  y\n", id="without an end of line"),
        pytest.param({"a": "x\n\n"}, "a: |+\n  x\n\n", id="with more than one"),
        pytest.param(["x\ny\n"], "- |\n  x\n  y\n", id="in a list"),
        pytest.param({"a": " x\ny"}, 'a: " x\\ny"\n', id="with a blank in front"),
        pytest.param("x", "x\n", id="a scalar alone"),
        pytest.param([], "[]\n", id="nothing"),
    ],
)
def test_yaml_should_read_well(value: Any, text: str) -> None:
    assert to_yaml(value) == text
    assert list(parse_documents(text)) == [value]


@pytest.mark.parametrize("text", ["true", "No", "on", "~", "null", "1", "1.5", "0x1", "1e3", "2026-01-02", "1:30", "-",
                                  "- a", "a: b", "a:", "a #b", "#a", "", " a", "a ", "@a", "*a", "&a", "!a", "%a", "{a",
                                  "[a", "=", "<<", ".inf", "Y", "nan"])  # fmt: skip
def test_text_that_could_be_mistaken_should_be_quoted(text: str) -> None:
    assert to_yaml({"a": text}) == f'a: "{text}"\n'


@pytest.mark.parametrize("text", ["node", "hf://a/b", "img/node:1", "a_b.c-d", "/etc/mpi", "a=b", "kubeflow.org/x"])
def test_plain_text_should_stay_plain(text: str) -> None:
    assert to_yaml({text: text}) == f"{text}: {text}\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["yes", "1", "a\nb\n", "\ta\nb"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@given(VALUES)
@settings(max_examples=cases(5_000))
def test_every_parser_should_read_back_what_was_written(value: Any) -> None:
    text = to_yaml(value)
    assert list(parse_documents(text)) == [value]
    assert yaml.load(text, Loader=yaml.SafeLoader) == value
