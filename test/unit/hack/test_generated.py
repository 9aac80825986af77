"""The one argument of what writes files: nothing may be written that was not asked for."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gen_crds
import gen_docs
import gen_facts
import gen_rbac
import gen_webhooks
import generated
import sbom

Main = Callable[[list[str]], int]

PLACES = ((gen_crds, "FOLDER"), (gen_webhooks, "FOLDER"), (gen_docs, "FILE"), (gen_facts, "FILE"), (gen_rbac, "FILE"))
MAINS = {module.__name__: module.main for module in (gen_crds, gen_docs, gen_facts, gen_rbac, gen_webhooks, sbom)}


@pytest.fixture(params=MAINS.values(), ids=list(MAINS))
def main(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Main:
    """A program that would write into an empty folder."""
    for module, place in PLACES:
        monkeypatch.setattr(module, place, tmp_path / module.__name__)
    monkeypatch.setattr(sys, "argv", ["the program"])
    asked: Main = request.param
    return asked


@pytest.mark.parametrize("arguments", [["--chekc"], ["--chec"], ["check"], ["--check", "more"]], ids=" ".join)
def test_what_is_not_understood_should_write_nothing(
    main: Main, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    said = capsys.readouterr()
    assert end.value.code == 2
    assert "--check" in said.err
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def test_help_should_teach_and_write_nothing(main: Main, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert "--check" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments, is_check", [([], False), (["--check"], True)])
def test_the_one_argument_should_be_understood(arguments: list[str], is_check: bool) -> None:
    assert generated.is_check(arguments, "Writes something anew.") is is_check
