import shutil
from pathlib import Path

import pytest

from clusters import lifecycle
from clusters.folder import Folder
from clusters.plan import Options
from controlplane.build import Assets
from controlplane.problem import Problem


def test_a_full_disk_should_be_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**8))
    folder = Folder(tmp_path / "clusters" / "one")
    with pytest.raises(Problem, match=r"^0\.5 GB are needed on the disk of .*/one, 0\.1 GB are free: .* XDG_STATE"):
        lifecycle.up(folder, Assets({}, {}), Options(), lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_removing_what_is_not_there_should_do_nothing(tmp_path: Path) -> None:
    lifecycle.down(Folder(tmp_path / "clusters" / "one"))
    assert tmp_path.exists()
