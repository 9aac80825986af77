from pathlib import Path

import pytest

from controlplane.problem import Problem
from controlplane.toolchain import Toolchain
from support.fakego import FakeGo


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path)
    monkeypatch.setenv("PATH", f"{fake.folder}:/usr/local/bin:/usr/bin:/bin")
    return fake


def test_a_new_enough_toolchain_should_be_found(go: FakeGo) -> None:
    assert Toolchain.find() == Toolchain(str(go.folder / "go"), "go1.26.8")


@pytest.mark.parametrize(
    "version, sentence",
    [
        ("go version go1.25.9 linux/amd64", r"^Go 1\.26 or newer is needed, .*/go is 1\.25: install a newer one\.$"),
        ("go version devel +abc", r"/go does not tell its version: install Go 1\.26 or newer\.$"),
        ("", r"/go does not tell its version: install Go 1\.26 or newer\.$"),
    ],
)
def test_another_version_should_be_one_sentence(go: FakeGo, version: str, sentence: str) -> None:
    go.set(version=version)
    with pytest.raises(Problem, match=sentence):
        Toolchain.find()


def test_no_toolchain_should_be_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match=r"^Go 1\.26 or newer is needed .*, and no `go` is on PATH: install it"):
        Toolchain.find()
