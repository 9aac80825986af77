"""SIGTERM and SIGINT: the first asks the program to stop, the second ends it at once, and so does taking too long.

The handlers are Python's own and not the event loop's, because a loop that is blocked must still be killable. They do
nothing but what is safe between any two bytecodes.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

WATCHDOG_MARGIN_SECONDS = 5.0
"""How long after the grace period the process is ended the hard way."""


class Terminator(Protocol):
    """The ways to end this process without asking it."""

    def exit_now(self) -> None:
        """End the process with code 1, without any clean-up."""
        ...

    def exit_after(self, seconds: float) -> None:
        """End the process with code 1 if it is still there in so many seconds, whatever it may be doing then."""
        ...


class ProcessTerminator:
    """Ends the real process. The delayed end is a thread of the interpreter that needs neither loop nor GIL."""

    def exit_now(self) -> None:
        """End the process with code 1, without any clean-up."""
        os._exit(1)

    def exit_after(self, seconds: float) -> None:
        """Let the interpreter write all stacks to standard error and exit with code 1 in so many seconds."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)


class StopSignals:
    """Turns signals into the event `stop` while its context is open.

    Enter it in the main thread, inside the event loop. Leaving it restores the former handlers, but does not call off
    the watchdog: once a stop has been asked for, the process ends in time even if it hangs after its loop has ended.
    """

    def __init__(self, grace_seconds: float, terminator: Terminator | None = None) -> None:
        """A negative grace period means to wait for ever."""
        self.stop = asyncio.Event()
        """Set when the program shall stop; never cleared."""
        self._grace_seconds = grace_seconds
        self._terminator = terminator or ProcessTerminator()
        self._is_asked = False
        """Whether the first signal has come; unlike `stop`, true from within the handler on."""
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def request_stop(self) -> None:
        """Do what the first signal does: set `stop` and start the watchdog. Further calls do nothing."""
        if self._is_asked:
            return
        self._is_asked = True
        if self._grace_seconds >= 0:
            self._terminator.exit_after(self._grace_seconds + WATCHDOG_MARGIN_SECONDS)
        self._loop.call_soon_threadsafe(self.stop.set)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked:
            self._terminator.exit_now()
        self.request_stop()
