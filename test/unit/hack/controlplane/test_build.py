import errno
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from clusters.wait import wait_for
from controlplane import build
from controlplane.build import built_programs, ensure_assets
from controlplane.problem import Problem, writing_to
from controlplane.product import PRODUCTS, Product
from controlplane.store import Store
from support.fakego import FakeGo

Usage = namedtuple("Usage", "total used free")


class Fruit(Product):
    """A product whose pins are in a folder of the test."""

    where: Path

    @property
    def folder(self) -> Path:
        return self.where


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", f"{fake.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    (fake.module / "deep").mkdir()
    (fake.module / "deep" / "crd.yaml").write_text("kind: Crd\n")
    return fake


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    folder = tmp_path / "pins"
    folder.mkdir()
    (folder / "go.mod").write_text("module fruit\n")
    (folder / "go.sum").write_text("")
    monkeypatch.setattr(Fruit, "where", folder, raising=False)
    programs = {"apple": "fruit/cmd/apple", "pear": "fruit/cmd/pear"}
    return Fruit("fruit", "example.org/fruit", programs=programs, manifests={"crd.yaml": "deep/crd.yaml"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def files_in(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file())


def test_everything_missing_should_be_built_and_copied(go: FakeGo, product: Product, store: Store) -> None:
    assets = ensure_assets(store, [product])
    assert {name: path.read_text() for name, path in assets.programs.items()} == {"apple": "whole", "pear": "whole"}
    assert assets.manifests["fruit"]["crd.yaml"].read_text() == "kind: Crd\n"
    assert files_in(store) == ["apple", "crd.yaml", "pear"]


def test_what_is_there_should_be_told_without_building_the_rest(go: FakeGo, product: Product, store: Store) -> None:
    with pytest.raises(Problem, match="make controlplane"):
        built_programs(store, [product])
    apple = ensure_assets(store, [product]).programs["apple"]
    store.path(product, "pear").unlink()
    assert built_programs(store, [product]) == {"apple": apple}
    assert files_in(store) == ["apple", "crd.yaml"]


def test_a_second_checkout_should_build_nothing(go: FakeGo, product: Product, store: Store) -> None:
    ensure_assets(store, [product])
    go.set(failure="never called")
    ensure_assets(Store(store.folder), [product])
    assert go.builds == ["fruit/cmd/apple", "fruit/cmd/pear"]


def test_other_pins_should_be_built_anew(go: FakeGo, product: Product, store: Store) -> None:
    before = ensure_assets(store, [product]).programs["apple"]
    (product.folder / "go.sum").write_text("another h1:sum=\n")
    assert ensure_assets(store, [product]).programs["apple"] != before
    assert len(go.builds) == 4


def test_ready_programs_should_be_used_and_only_the_others_built(
    go: FakeGo, product: Product, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "assets" / "apple"
    ready.parent.mkdir()
    ready.touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(ready.parent))
    assert ensure_assets(store, [product]).programs["apple"] == ready
    assert go.builds == ["fruit/cmd/pear"]


def test_a_failed_build_should_tell_why_and_leave_nothing(go: FakeGo, product: Product, store: Store) -> None:
    go.set(failure="fruit/apple.go:1:1: undefined: seed")
    with pytest.raises(Problem, match=r"building apple failed:\nfruit/apple.go:1:1: undefined: seed"):
        ensure_assets(store, [product])
    assert files_in(store) == ["crd.yaml"]


def test_a_full_disk_during_the_build_should_be_one_sentence(go: FakeGo, product: Product, store: Store) -> None:
    go.set(failure="link: write /x: no space left on device")
    with pytest.raises(Problem, match=r"^no space was left on the disk while building apple"):
        ensure_assets(store, [product])
    assert files_in(store) == ["crd.yaml"]


def test_too_little_disk_should_be_told_before_anything_is_built(
    go: FakeGo, product: Product, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12 - 10**8, 10**8))
    with pytest.raises(
        Problem, match=r"^1\.0 GB are needed on the disk of .*, 0\.1 GB are free: free some, or set XDG"
    ):
        ensure_assets(store, [product])
    assert go.builds == []


def test_a_cache_folder_that_cannot_be_made_should_be_one_sentence(
    go: FakeGo, product: Product, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match=r"^cannot write to .*/file/store \(not a directory\): set XDG_CACHE_HOME"):
        ensure_assets(Store(tmp_path / "file" / "store"), [product])
    assert go.builds == []


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.EROFS, "read-only file system"),
        (errno.EACCES, "permission denied"),
        (errno.ENOSPC, "no space is left on the disk"),
    ],
)
def test_a_refusal_of_the_file_system_should_name_folder_and_variable(number: int, words: str) -> None:
    with pytest.raises(Problem, match=words) as raised, writing_to(Path("/somewhere"), "VARIABLE"):
        raise OSError(number, os.strerror(number))
    assert "/somewhere" in str(raised.value)
    assert "VARIABLE" in str(raised.value)


def test_other_errors_should_stay_what_they_are() -> None:
    with pytest.raises(FileNotFoundError), writing_to(Path("/somewhere"), "VARIABLE"):
        raise FileNotFoundError(errno.ENOENT, "gone")


def test_a_build_that_was_killed_should_be_made_again(go: FakeGo, product: Product, store: Store) -> None:
    leftover = store.path(product, ".unfinished-1")
    leftover.mkdir(parents=True)
    (leftover / "apple").write_text("half")
    assert ensure_assets(store, [product]).programs["apple"].read_text() == "whole"
    assert files_in(store) == ["apple", "crd.yaml", "pear"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_should_leave_nothing(go: FakeGo, tmp_path: Path, number: signal.Signals) -> None:
    go.set(hangs=True)
    cache = tmp_path / "cache"
    hack = Path(build.__file__).parent.parent
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(hack)}
    program = subprocess.Popen(
        [sys.executable, "-c", "from controlplane.__main__ import main; import sys; sys.argv = ['x']; main()"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        assert wait_for(lambda: any(path.name == "etcd" for path in cache.rglob("*")), 25)
        program.send_signal(number)
        assert program.wait(25) == 130
        assert program.stderr is not None
        assert program.stderr.read().endswith("interrupted\n")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_every_product_should_be_pinned() -> None:
    for product in PRODUCTS:
        assert f"{product.module} v" in (product.folder / "go.mod").read_text()
        assert f"{product.module} v" in (product.folder / "go.sum").read_text()
