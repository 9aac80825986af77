import os
import signal
import subprocess
import sys
import time

import pytest

from ktrainer.aio.signals import StopSignals
from support.patience import Noting


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_should_ask_to_stop_and_start_the_watchdog(number: signal.Signals) -> None:
    recorder = Noting()
    with StopSignals(30, recorder) as signals:
        assert not signals.stop.is_set()
        os.kill(os.getpid(), number)
        await signals.stop.wait()
    assert recorder.asked == ["after 35"]


async def test_the_second_signal_should_end_the_process_at_once() -> None:
    recorder = Noting()
    with StopSignals(30, recorder):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert recorder.asked == ["after 35", "now"]


async def test_a_signal_should_not_need_a_free_event_loop() -> None:
    recorder = Noting()
    with StopSignals(30, recorder) as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert recorder.asked == ["after 35"]
        assert not signals.stop.is_set()


async def test_a_stop_without_a_signal_should_start_the_watchdog_once() -> None:
    recorder = Noting()
    with StopSignals(30, recorder) as signals:
        signals.request_stop()
        signals.request_stop()
        await signals.stop.wait()
        assert recorder.asked == ["after 35"]
        os.kill(os.getpid(), signal.SIGTERM)
        assert recorder.asked == ["after 35", "now"]


async def test_a_negative_grace_period_should_mean_no_watchdog() -> None:
    recorder = Noting()
    with StopSignals(-1, recorder) as signals:
        signals.request_stop()
        await signals.stop.wait()
    assert recorder.asked == []


async def test_leaving_should_restore_the_former_handlers() -> None:
    former = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with StopSignals(30, Noting()):
        assert signal.getsignal(signal.SIGTERM) != former[0]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == former


PROGRAM = """
import asyncio, sys, uvloop
from ktrainer.aio import signals

async def main():
    signals.WATCHDOG_MARGIN_SECONDS = 0.2
    with signals.StopSignals({grace}) as stopping:
        print("ready", flush=True)
        {body}

with asyncio.Runner(loop_factory={loop}) as runner:
    runner.run(main())
{after}
"""

loops = pytest.mark.parametrize("loop", ["asyncio.new_event_loop", "uvloop.new_event_loop"])


def start(body: str, loop: str, after: str = "", grace: float = 0.1) -> subprocess.Popen[str]:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body, loop=loop, after=after, grace=grace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


@loops
def test_a_program_should_end_by_itself_after_a_signal(loop: str) -> None:
    program = start("await stopping.stop.wait(); print('bye', flush=True)", loop, grace=60)
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=10)
    assert (program.returncode, out, err) == (0, "bye\n", "")


@loops
def test_a_program_that_takes_too_long_should_be_ended_with_its_stacks_shown(loop: str) -> None:
    program = start("await asyncio.Event().wait()", loop)
    program.send_signal(signal.SIGTERM)
    _, err = program.communicate(timeout=10)
    assert program.returncode == 1
    assert "most recent call first" in err


@loops
def test_a_program_that_hangs_after_its_loop_should_be_ended(loop: str) -> None:
    program = start("await stopping.stop.wait()", loop, after="import threading; threading.Event().wait()")
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=10)
    assert program.returncode == 1


@loops
def test_a_blocked_loop_should_be_ended_by_the_second_signal(loop: str) -> None:
    program = start("print('busy', flush=True)\n        while True: pass", loop, grace=60)
    assert program.stdout is not None
    assert program.stdout.readline() == "busy\n"
    deadline = time.monotonic() + 10
    while program.poll() is None and time.monotonic() < deadline:
        program.send_signal(signal.SIGTERM)  # one that comes before the last was handled is merged with it
    _, err = program.communicate(timeout=10)
    assert (program.returncode, err) == (1, "")
