from ktrainer.statusserver.callers import BURST, MAX_CALLERS, RATE, Callers
from support.virtualtime import ManualClock


def test_a_client_should_have_its_burst_and_then_its_rate() -> None:
    clock = ManualClock()
    callers = Callers(clock)
    assert [callers.admit("10.0.0.1") for _ in range(BURST + 2)] == [True] * BURST + [False] * 2
    clock.advance(1)
    assert sum(callers.admit("10.0.0.1") for _ in range(BURST)) == RATE


def test_one_client_should_not_use_up_the_share_of_another() -> None:
    callers = Callers(ManualClock())
    for _ in range(2 * BURST):
        callers.admit("10.0.0.1")
    assert callers.admit("10.0.0.2")


def test_who_called_last_should_be_remembered_longest() -> None:
    callers = Callers(ManualClock())
    for _ in range(BURST):
        callers.admit("old")
        callers.admit("new")
    for number in range(MAX_CALLERS - 2):
        callers.admit(str(number))
    assert not callers.admit("new")
    callers.admit("one more")
    assert not callers.admit("new")
    assert callers.admit("old")
