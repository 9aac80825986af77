from pathlib import Path

import pytest

import gen_docs
from ktrainer.api.configuration import Configuration
from ktrainer.api.gates import Gate


def test_the_committed_file_should_be_current() -> None:
    assert gen_docs.main(["--check"]) == 0


def test_the_check_should_notice_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_docs, "FILE", tmp_path / "configuration.md")
    assert gen_docs.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert gen_docs.main([]) == 0
    assert gen_docs.main(["--check"]) == 0


def test_every_key_and_gate_should_be_explained() -> None:
    text = gen_docs.render()
    for name, field in Configuration.model_fields.items():
        if name not in {"api_version", "kind"}:
            assert f"\n## {field.alias}\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    assert [row for row in rows if not row.split("|")[-2].strip()] == []
    for gate in Gate:
        assert f"| `{gate}` |" in text


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("| `port` | integer | `9443` | The port to listen on. |", id="number"),
        pytest.param("| `leaseDuration` | duration | `15s` | How long others wait for a leader", id="duration"),
        pytest.param("| `auth.enabled` | true or false | `false` | Whether readers need a token", id="section"),
        pytest.param("| `groupKindConcurrency` | map of integer |  | How many objects of a kind", id="map"),
        pytest.param("| `disabled` | list of text |  | Plugins that are switched off. |", id="list"),
    ],
)
def test_a_row_should_read_as_people_write(row: str) -> None:
    assert row in gen_docs.render()
