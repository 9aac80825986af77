"""What a reconciler takes part in: the `Result` that it returns, and the errors that mean something to its controller.

    Exception
    ├── TerminalError     trying again is pointless until something changes
    ├── RetryableError    expected to go away, such as a dependency that is not there yet
    │   └── Stale         our own last write is not yet in the cache
    ├── ApiError          from `kube`: what the API server answered
    └── any other         a bug, or something that nobody thought of

All but the first are tried again. Several at once may come as an ExceptionGroup.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What shall happen next to a key that was reconciled."""

    requeue_after: float | None = None
    """Reconcile again in so many seconds, whatever happens; None and 0 mean when something changes."""

    priority: int | None = None
    """The priority of that next turn; None for that of this one."""


class TerminalError(Exception):
    """A failure that no retry will mend: the key gets its next turn when something changes."""


class RetryableError(Exception):
    """A failure that is expected and goes away by itself."""

    def __init__(self, message: str, *, requeue_after: float | None = None) -> None:
        super().__init__(message)
        self.requeue_after = requeue_after
        """The next turn comes in so many seconds at the latest, however long the backoff is."""


class Stale(RetryableError):
    """The cache does not yet show our own last write: not a failure, just too early."""
