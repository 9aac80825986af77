"""How many cases a property runs: a share on a laptop, all of them with KTRAINER_PROPERTIES=full.

The full count takes minutes, so give pytest a --timeout that allows for it.
"""

from __future__ import annotations

import os


def cases(full: int) -> int:
    """Return `full` when the full count is asked for, else a hundredth of it, between 20 and 200."""
    if os.environ.get("KTRAINER_PROPERTIES") == "full":
        return full
    return min(full, 200, max(20, full // 100))
