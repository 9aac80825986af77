from typing import Any

import pytest

from ktrainer.api.yamltext import YamlError, parse_documents


def parse(text: str) -> Any:
    (document,) = parse_documents(text)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02", "2026-01-02"),
        ("1:30", "1:30"),
        ("=", "="),
        (".inf", ".inf"),
        ("15s", "15s"),
        ("1", 1),
        ("-1_000", -1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("0b11", 3),
        ("08", 8),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("2.0", 2),
        ("1e300", 1e300),
        (".5", 0.5),
        ("1234e567", "1234e567"),
        ("0xdeadbeefdeadbeefdead", "0xdeadbeefdeadbeefdead"),
        ("[cat, <<, EOF]", ["cat", "<<", "EOF"]),
        ("yes", True),
        ("y", True),
        ("!!bool Y", True),
        ("N", False),
        ("Off", False),
        ("~", None),
        ("'1'", "1"),
        ("{a: 1, 2: b, true: c, 1.5: d}", {"a": 1, "2": "b", "true": "c", "1.5": "d"}),
        ("[1, [2]]", [1, [2]]),
        ("v: &a {p: 1, q: 2}\nw: {<<: *a, p: 3}", {"v": {"p": 1, "q": 2}, "w": {"p": 3, "q": 2}}),
    ],
)
def test_yaml_should_be_what_json_can_say(text: str, value: object) -> None:
    parsed = parse(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: 2\na: 3", "the key 'a' is given twice.*line 3"),
        ("{a: {b: 1, b: 2}}", "the key 'b' is given twice"),
        ("{[1]: 2}", "a key must be a string"),
        ("{null: 2}", "a key must be a string"),
        ("0x_", "invalid literal"),
        ("1" * 5000, "digits"),
        ("a: 18446744073709551616", "an integer must fit into 64 bits.*line 1"),
        ("-9223372036854775809", "64 bits"),
        ('{"a": 1e400}', "infinity"),
        ("!!float abc", "could not convert.*line 1"),
        ("a: &a [*a]", "recursive"),
        ("a: &a {b: *a}", "recursive"),
        ("&a [*a]", "recursive"),
        ("[" * 150 + "]" * 150, "nested more than 100 levels deep"),
        ("a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)), "values"),
        ("a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{f'*a{n - 1},' * 9}]}}\n" for n in range(1, 12)), "values"),
        ("&a {k: v, x: {<<: [*a, *a]}}", "reference .a is recursive"),
        ("a: !!bool maybe", "must be true or false.*line 1"),
        ("!!bool [1]", "expected a scalar node"),
        ("a: !!map [b]", "must be a map.*line 1"),
        ("!!map b", "must be a map"),
        ("a: [", "did not find expected node content"),
        ("!!python/object:os.system {}", "could not determine a constructor"),
        ("!!timestamp 2026-01-02", "could not determine a constructor"),
        ("[" * 10000, "nested more than 100 levels deep"),
        # The parser would recurse in C, and end the process.
        ("a: " + "[" * 100_000 + "]" * 100_000, "nested more than 100 levels deep"),
        ("- " * 100_000, "nested more than 100 levels deep"),
        ("[" * 1_000_000, "nested more than 100 levels deep"),
        ("\x00", "."),
        ('{"a": 1, "a": 2}', "duplicate key"),
        ('{"a": {"b": 1, "b": 2}}', "duplicate key"),
        ('{"a": 18446744073709551616}', "out of range"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "\\ud83d\\ude00", "b": [}', "."),
    ],
)
def test_anything_else_should_be_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(YamlError, match=reason):
        parse(text)


def test_a_stream_should_give_its_documents() -> None:
    assert list(parse_documents("a: 1\n---\n---\n- 2\n")) == [{"a": 1}, None, [2]]
    assert list(parse_documents("")) == []
    assert list(parse_documents("# nothing\n")) == []


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        pytest.param('{"a": "\\ud83d\\ude00"}', [{"a": "\U0001f600"}], id="a character in two halves"),
        pytest.param('{"a":1}{"b":2}\n\n{"c":3}\n', [{"a": 1}, {"b": 2}, {"c": 3}], id="no lines between"),
        pytest.param(
            '# c\n---\n{"a":1}\n---\nb: 2\n---\n---\n{c: 3}', [{"a": 1}, {"b": 2}, None, {"c": 3}], id="mixed"
        ),
        pytest.param('--- {"a":1}\n--- {b: 2}\n', [{"a": 1}, {"b": 2}], id="on the line of the mark"),
        pytest.param('%YAML 1.1\n---\n{"a":1}\n...\n', [{"a": 1}], id="with directives"),
        pytest.param('{"a":1,} # YAML all the same', [{"a": 1}], id="nearly JSON"),
        pytest.param("a: |\n  ---\n---\n[1]", [{"a": "---\n"}, [1]], id="a mark in a text"),
    ],
)
def test_documents_of_json_should_be_read_as_such(text: str, documents: list[Any]) -> None:
    assert list(parse_documents(text)) == documents


@pytest.mark.parametrize("text", ['{"a": [2.0, 1e1]}', "a: [2.0, 1e1]"])
def test_numbers_without_a_fraction_should_be_integers_in_json_and_yaml(text: str) -> None:
    (document,) = parse_documents(text)
    assert [(number, type(number)) for number in document["a"]] == [(2, int), (10, int)]


def test_an_error_after_json_should_be_told_by_its_line_in_the_whole() -> None:
    with pytest.raises(YamlError, match="line 5"):
        list(parse_documents('{"a": 1}\n---\nb: 1\n...\nc: ]\n'))
