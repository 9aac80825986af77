from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusters.folder import Folder
from clusters.logs import last_lines, merged, time_of


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        '{"level":"warn","ts":"2026-03-04T05:06:07.891011Z","msg":"x"}',
        "2026-03-04T05:06:07.891011Z\tINFO\tsetup\tx",
        "2026-03-04T06:06:07.891011+01:00 x",
        "2026-03-04T06:06:07.891011+0100 x",
    ],
)
def test_the_time_of_a_line_should_be_read(line: str) -> None:
    assert time_of(line) == datetime(2026, 3, 4, 5, 6, 7, 891011, UTC)


def test_the_time_of_a_klog_line_should_be_of_this_year_and_zone() -> None:
    now = datetime.now().astimezone().replace(microsecond=123456)
    assert time_of(f"I{now:%m%d %H:%M:%S.%f}    1234 file.go:1] text") == now


@pytest.mark.parametrize("line", ["", "goroutine 1 [running]:", "I9999 99:99:99.999999 x"])
def test_a_line_without_a_time_should_have_none(line: str) -> None:
    assert time_of(line) is None


def test_logs_should_be_merged_by_time_with_stacks_kept_together(folder: Folder) -> None:
    folder.log("a").write_text("2026-01-01T00:00:01Z one\n  its stack\n2026-01-01T00:00:04Z four\n")
    folder.log("bb").write_text("2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z three\n")
    assert [line.replace("2026-01-01T00:00:", "") for line in merged(folder)] == [
        "a  | 01Z one",
        "a  |   its stack",
        "bb | 02Z two",
        "bb | 03Z three",
        "a  | 04Z four",
    ]


def test_the_last_lines_should_be_the_last(folder: Folder) -> None:
    folder.log("a").write_text("".join(f"{number}\n" for number in range(30)))
    assert last_lines(folder, "a", 3) == ["27", "28", "29"]
    assert last_lines(folder, "none", 3) == []
