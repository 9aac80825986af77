import signal
from collections.abc import Iterator
from typing import NoReturn

import pytest

from benchmarks.command import run
from benchmarks.figure import Figure

MET = Figure("speed", 90, "/s", 80, is_more_better=True)
MISSED = Figure("size", 9, "KiB", 8)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("figures", "code"),
    [
        pytest.param([MET], 0, id="all are met"),
        pytest.param([MET, MISSED], 1, id="one is missed"),
    ],
)
def test_benchmark_should_exit_with_1_where_a_target_is_missed(
    figures: list[Figure], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(lambda: figures)
    assert ended.value.code == code
    words = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[: len(figures)]]
    assert words == ["met" if figure is MET else "MISSED" for figure in figures]


def test_interrupted_benchmark_should_clean_up_and_end_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    cleaned: list[bool] = []

    def measure() -> NoReturn:
        try:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError
        finally:
            cleaned.append(True)

    with pytest.raises(SystemExit) as ended:
        run(measure)
    assert (ended.value.code, cleaned) == (130, [True])
    assert capsys.readouterr().err == "interrupted\n"
