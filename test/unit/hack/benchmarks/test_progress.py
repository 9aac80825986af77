from benchmarks.progress import INTERVAL_SECONDS, Progress


def test_progress_should_be_told_once_in_a_while_and_not_at_the_end() -> None:
    told: list[str] = []
    times = iter((0.0, 1.0, INTERVAL_SECONDS, INTERVAL_SECONDS + 1, 60.0))
    progress = Progress(10_000, told.append, lambda: next(times))
    for count in (500, 2_500, 3_000, 10_000):
        progress.reached(count)
    assert told == ["  2,500 of 10,000"]
