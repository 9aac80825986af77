"""Waiting for a condition outside this process, by asking again and again."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float, interval: float = 0.05) -> bool:
    """Ask until the condition holds or the time is up; return whether it came to hold."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        pause.wait(interval)
    return True
