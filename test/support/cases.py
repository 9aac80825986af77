"""How many cases a property runs: a share by default, all with HYPOTHESIS_PROFILE=ci, as `make properties` does.

The full count takes minutes, so give pytest a --timeout that allows for it.
"""

from __future__ import annotations

import os

IS_FULL = os.environ.get("HYPOTHESIS_PROFILE") == "ci"


def cases(full: int) -> int:
    """Return `full` when the full count is asked for, else a hundredth of it, between 20 and 200."""
    return full if IS_FULL else min(full, 200, max(20, full // 100))
