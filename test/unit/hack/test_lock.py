import shutil
from pathlib import Path

import pytest

import lock


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    for name in ["pyproject.toml", *(f"requirements/{each}" for each in lock.LOCKS)]:
        shutil.copy(lock.ROOT / name, tmp_path / name)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_locks_of_this_checkout_should_be_fresh() -> None:
    assert lock.findings(lock.ROOT) == []


def test_a_changed_dependency_should_make_every_lock_stale(checkout: Path) -> None:
    edit(checkout / "pyproject.toml", '"aiohttp>=', '"aiohttp>=0.1,>=')
    assert [problem.split(",")[0] for problem in lock.findings(checkout)] == [
        "requirements/manager.txt is stale",
        "requirements/build.txt is stale",
        "requirements/dev.txt is stale",
    ]


def test_a_setting_that_locks_nothing_should_leave_the_locks_fresh(checkout: Path) -> None:
    edit(checkout / "pyproject.toml", "line-length = 120", "line-length = 100")
    assert lock.findings(checkout) == []


def test_a_missing_lock_should_be_found(checkout: Path) -> None:
    (checkout / "requirements" / "dev.txt").unlink()
    assert lock.findings(checkout) == ["requirements/dev.txt is missing: run `make lock`."]


@pytest.mark.parametrize("line", ["--index-url https://example.org/simple\n", "x @ https://example.org/x.whl\n"])
def test_an_address_in_a_lock_should_be_found(checkout: Path, line: str) -> None:
    path = checkout / "requirements" / "dev.txt"
    path.write_text(path.read_text() + line)
    assert lock.findings(checkout) == ["requirements/dev.txt holds an address: locks name versions and hashes only."]


def test_a_version_without_a_hash_should_be_found(checkout: Path) -> None:
    path = checkout / "requirements" / "dev.txt"
    path.write_text(path.read_text() + "left-out==1.0\n")
    assert lock.findings(checkout) == ["requirements/dev.txt holds a version without a hash: run `make lock`."]


def test_a_version_that_is_shipped_but_not_tested_should_be_found(checkout: Path) -> None:
    version = lock.pins_of((checkout / "requirements" / "manager.txt").read_text())["aiohttp"]
    edit(checkout / "requirements" / "manager.txt", f"aiohttp=={version}", "aiohttp==3.0.0")
    assert lock.findings(checkout) == ["aiohttp 3.0.0 of manager.txt is not what dev.txt tests: run `make lock`."]
