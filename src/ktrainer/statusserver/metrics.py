"""The metrics of the progress server. All series exist from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Counter

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

CODES: Final = (200, 403, 404, 408, 409, 413, 422, 429, 499, 500)
"""The HTTP status codes that are answered with. 499 means that the client went away before there was an answer."""


class ProgressMetrics:
    """What the progress server counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "ktrainer_progress_requests", "Reports of progress by HTTP status code.", ("code",), registry=registry
        )
        writes = Counter(
            "ktrainer_progress_writes",
            "Reports of progress that were written into a TrainJob, or could not be.",
            ("result",),
            registry=registry,
        )
        self._by_code = {code: requests.labels(str(code)) for code in CODES}
        self.written = writes.labels("written")
        self.failed = writes.labels("failed")

    def count_request(self, code: int) -> None:
        """Count a request by what it was answered with."""
        self._by_code[code].inc()
