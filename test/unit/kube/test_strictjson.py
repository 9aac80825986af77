from __future__ import annotations

import json
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.kube.jsonvalue import are_same
from ktrainer.kube.strictjson import StrictJsonError, decode
from support.cases import cases
from support.jsonvalues import SCALARS, VALUES


class Pairs(list[tuple[str, Any]]):
    """An object as a list of its pairs, so that keys may repeat."""

    def text(self, separator: str) -> str:
        return "{" + ",".join(f"{json.dumps(key)}{separator}{text_of(value, separator)}" for key, value in self) + "}"

    def has_twins(self) -> bool:
        return len({key for key, _ in self}) < len(self) or any(has_twins(value) for _, value in self)


def text_of(value: Any, separator: str) -> str:
    if isinstance(value, Pairs):
        return value.text(separator)
    if isinstance(value, list):
        return "[" + ",".join(text_of(item, separator) for item in value) + "]"
    return json.dumps(value)


def has_twins(value: Any) -> bool:
    if isinstance(value, Pairs):
        return value.has_twins()
    return isinstance(value, list) and any(map(has_twins, value))


DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sampled_from(['":"', '{"a":1,"a":2}', "\\", '\\"a":', "<&>"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(Pairs)
    ),
    max_leaves=10,
)


@settings(max_examples=cases(2_000))
@given(DOCUMENTS, st.sampled_from([":", " : "]))
def test_exactly_the_documents_with_duplicate_keys_should_be_refused(document: Any, separator: str) -> None:
    text = text_of(document, separator)
    if has_twins(document):
        with pytest.raises(StrictJsonError, match="duplicate key"):
            decode(text.encode())
    else:
        assert are_same(decode(text.encode()), json.loads(text))


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_any_value_should_be_decoded_however_it_is_written(value: Any, ascii_only: bool, indent: int | None) -> None:
    assert are_same(decode(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()), value)


@pytest.mark.parametrize(
    "body, reason",
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"{} {}", "not valid JSON"),
        (b"NaN", "not valid JSON"),
        (b"[Infinity]", "not valid JSON"),
        (b"[-Infinity]", "not valid JSON"),
        (b"1e400", "not valid JSON"),
        (b'"\xff"', "not valid JSON"),
        (b'"\\ud800"', "not valid JSON"),
        ('{"a":1}'.encode("utf-16"), "not valid JSON"),
        (b'{"a":1,"b":{"c":1,"c":1}}', 'duplicate key: "c"'),
        (b'{"a":1,"\\u0061":1}', 'duplicate key: "a"'),
        (b'{"<":1,"\\u003c":1}', 'duplicate key: "<"'),
        (b'{"a":1,"b" :1,"a":1}', 'duplicate key: "a"'),
        (b"[18446744073709551616]", "integer out of range: 18446744073709551616"),
        (b"[-9223372036854775809]", "integer out of range"),
        (b"1" * 5000, "not valid JSON|integer out of range: 1{40}$"),
    ],
)
def test_what_nobody_sends_in_good_faith_should_be_refused(body: bytes, reason: str) -> None:
    with pytest.raises(StrictJsonError, match=reason):
        decode(body)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1, 2**64 - 1])
def test_integers_of_64_bits_should_survive(number: int) -> None:
    assert are_same(decode(b'{"a":%d}' % number), {"a": number})
    assert are_same(decode(b'{ "a": %d }' % number), {"a": number})


def nested(depth: int, inside: bytes, blank: bytes) -> bytes:
    lists = depth // 2
    maps = depth - lists
    return b"[" * lists + b'{"a":' * maps + blank + inside + b"}" * maps + b"]" * lists


@pytest.mark.parametrize("blank", [b"", b" "])
def test_values_should_lie_at_most_a_hundred_levels_deep(blank: bytes) -> None:
    decode(nested(100, b"1", blank))
    decode(nested(100, b"[]", blank))
    decode(nested(99, b"[1,2]", blank))
    for body in (
        nested(101, b"1", blank),
        nested(100, b"[1]", blank),
        nested(300, b"1", blank),
        nested(1000, b"1", blank),
    ):
        with pytest.raises(StrictJsonError, match="nested more than 100 levels deep"):
            decode(body)
    with pytest.raises(StrictJsonError, match="not valid JSON"):
        decode(nested(100_000, b"1", blank))


def test_a_document_that_would_explode_when_indented_should_take_little_memory() -> None:
    wide = b"[" + b",".join([b"1"] * 200_000) + b"]"
    body = nested(90, wide, b"")
    tracemalloc.start()
    try:
        assert decode(body) == orjson.loads(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20
    with pytest.raises(StrictJsonError, match="nested"):
        decode(nested(150, wide, b""))


@pytest.mark.parametrize(
    "body", [b'{"a":"x","b":[1,2.5,true,null]}\n', rb'{"command":"a \u0026\u0026 b \u003e c"}', b"{}", '"é"'.encode()]
)
def test_what_an_api_server_sends_should_not_be_read_twice(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("read twice")

    monkeypatch.setattr(json, "loads", refuse)
    assert decode(body) == orjson.loads(body)
