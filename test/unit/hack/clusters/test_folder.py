from pathlib import Path

import pytest

from clusters.folder import Folder
from controlplane.problem import Problem


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a" * 41])
def test_a_name_that_is_none_should_be_refused(name: str) -> None:
    with pytest.raises(Problem, match="is no name for a cluster"):
        Folder.named(name)


def test_a_cluster_should_be_created_once() -> None:
    Folder.named("one").create()
    with pytest.raises(Problem, match="the cluster 'one' exists"):
        Folder.named("one").create()
    assert [folder.name for folder in Folder.all()] == ["one"]


def test_removing_the_last_cluster_should_leave_no_file(state: Path) -> None:
    for name in ("one", "two"):
        Folder.named(name).create()
    Folder.named("one").log("etcd").write_text("x")
    Folder.named("one").remove()
    assert [folder.name for folder in Folder.all()] == ["two"]
    Folder.named("two").remove()
    assert list(state.iterdir()) == []
    assert Folder.all() == []


def test_only_the_user_should_see_inside() -> None:
    folder = Folder.named("one")
    folder.create()
    assert folder.path.stat().st_mode & 0o077 == 0


def test_a_plan_should_be_read_as_it_was_written() -> None:
    folder = Folder.named("one")
    folder.create()
    folder.write_plan({"server": "x"})
    assert folder.read_plan() == {"server": "x"}


def test_a_cluster_that_is_not_there_should_be_one_sentence() -> None:
    with pytest.raises(Problem, match="there is no cluster 'one'"):
        Folder.named("one").read_plan()


@pytest.mark.parametrize("content", [None, "", "{"])
def test_a_cluster_without_a_whole_plan_should_be_one_sentence(content: str | None) -> None:
    folder = Folder.named("one")
    folder.create()
    if content is not None:
        folder.file("cluster.json").write_text(content)
    with pytest.raises(Problem, match="is being started, or its start was cut off"):
        folder.read_plan()


def test_a_state_folder_that_cannot_be_made_should_be_one_sentence(state: Path) -> None:
    state.touch()
    with pytest.raises(Problem, match=r"cannot write to .* \(not a directory\): set XDG_STATE_HOME"):
        Folder.named("one").create()
