import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.cache.reflector.jsonparts import elements_of, members_of
from support.cases import cases
from support.jsonvalues import VALUES

TEXTS = st.text(st.sampled_from('ab,:"\\[]{} \né'), max_size=6)
NESTED = st.one_of(VALUES, TEXTS, st.lists(TEXTS), st.dictionaries(TEXTS, TEXTS))


@settings(max_examples=cases(1_000))
@given(st.lists(NESTED), st.sampled_from([None, 2]))
def test_the_elements_of_an_array_should_be_its_elements(values: list[object], indent: int | None) -> None:
    document = json.dumps(values, indent=indent).encode()
    assert [json.loads(element) for element in elements_of(document)] == values


@settings(max_examples=cases(1_000))
@given(st.dictionaries(st.sampled_from(["kind", "type", "é:,", "{", ""]), NESTED), st.sampled_from([None, 2]))
def test_the_members_of_an_object_should_be_its_members(values: dict[str, object], indent: int | None) -> None:
    document = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    assert {name: json.loads(member) for name, member in members_of(document).items()} == values


def test_depth_should_not_matter() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    assert members_of(b'{"spec":' + deep + b',"metadata":{}}') == {"spec": deep, "metadata": b"{}"}


def test_whatever_is_no_json_should_not_hang() -> None:
    began = time.process_time()
    for document in (b"", b"[", b"}]", b'{"a', b'"' * 100_001, b'"\\' * 100_000, b'{"a" 1, 2}'):
        list(elements_of(document))
        members_of(document)
    assert time.process_time() - began < 5
