import io
import json
from pathlib import Path

import pytest

from ktrainer.cli.input import InputError, read_documents


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "in.yaml"


def test_documents_should_be_numbered_as_they_stand(file: Path) -> None:
    file.write_text('# only a comment\n---\nkind: A\n---\n---\nkind: B\n---\n{"kind": "C"}\n')
    found = [(document.number, document.value) for document in read_documents([str(file)])]
    assert found == [(1, {"kind": "A"}), (3, {"kind": "B"}), (4, {"kind": "C"})]


def test_a_list_should_be_taken_apart(file: Path) -> None:
    file.write_text("kind: List\nitems:\n- kind: A\n- kind: B\n")
    assert [document.value for document in read_documents([str(file)])] == [{"kind": "A"}, {"kind": "B"}]


def test_a_list_of_an_api_server_and_one_in_another_should_be_taken_apart(file: Path) -> None:
    file.write_text("kind: List\nitems:\n- kind: TrainJobList\n  items:\n  - kind: A\n- kind: BList\n  items: {}\n")
    found = [document.value for document in read_documents([str(file)])]
    assert found == [{"kind": "A"}, {"kind": "BList", "items": {}}]


def test_the_input_should_be_a_file_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: A\n"))
    assert [str(document) for document in read_documents(["-"])] == ["-#1: A/"]


def test_the_input_should_be_utf8_whatever_the_locale_says(monkeypatch: pytest.MonkeyPatch) -> None:
    written = '{"kind": "\u00e9\\ud83d\\ude00"}'.encode("utf-8-sig")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(written), encoding="latin-1"))
    assert [document.value for document in read_documents(["-", "-"])] == [{"kind": "\u00e9\U0001f600"}]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: \xe9"), encoding="latin-1"))
    with pytest.raises(InputError, match=r"-: not UTF-8 at byte 6$"):
        read_documents(["-"])


def test_an_input_that_is_closed_should_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(InputError, match="closed"):
            read_documents(["-"])


def test_json_should_be_read_as_encoders_write_it(file: Path) -> None:
    file.write_text(json.dumps({"kind": "\U0001f600"}) + json.dumps({"kind": "B"}) + "\n---\nkind: C\n")
    found = [(document.number, document.value["kind"]) for document in read_documents([str(file)])]
    assert found == [(1, "\U0001f600"), (2, "B"), (3, "C")]


def test_a_mark_at_the_begin_of_a_file_should_be_skipped(file: Path) -> None:
    file.write_text('{"kind": "\\ud83d\\ude00"}', encoding="utf-8-sig")
    assert len(read_documents([str(file)])) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: A\n---\n[1]\n", "#2: not an object"),
        ("kind: A\n---\na: [\n", "#2: "),
        ("a: 1\na: 2\n", "#1: the key 'a' is given twice at line 2, column 1$"),
        ("a:\n\t- 1\n", "#1: .* found character that cannot start any token at line 2, column 1$"),
        ("kind: List\nitems: [1]\n", "#1: an item of the list is not an object"),
        ('{"a": 1}{"a": 2, "a": 3}', "#2: duplicate key"),
        ("a: 18446744073709551616\n", "#1: an integer must fit into 64 bits"),
    ],
)
def test_what_cannot_be_read_should_be_told_with_its_place(file: Path, text: str, reason: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=f"in.yaml{reason}"):
        read_documents([str(file)])


def test_a_file_that_cannot_be_read_should_be_named_once(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a\xff")
    reasons = {"none": "No such file or directory", "": "Is a directory", "binary": "not UTF-8 at byte 1"}
    for name, reason in reasons.items():
        with pytest.raises(InputError) as caught:
            read_documents([str(tmp_path / name)])
        assert str(caught.value) == f"{tmp_path / name}: {reason}"
