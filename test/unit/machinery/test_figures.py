"""Every figure that others rely on, in one place: a change of one of them has to be made twice, and is seen."""

import pytest

from ktrainer.aio import backoff, lag, signals
from ktrainer.machinery.queue import delays, ratelimiter, workqueue
from ktrainer.machinery.queue import metrics as queuemetrics

_BACKOFF = backoff.BackoffPolicy()

FIGURES = [
    ("list/watch backoff: initial seconds", _BACKOFF.initial_seconds, 0.8),
    ("list/watch backoff: factor", _BACKOFF.factor, 2.0),
    ("list/watch backoff: cap seconds", _BACKOFF.cap_seconds, 30.0),
    ("list/watch backoff: jitter", _BACKOFF.jitter, 1.0),
    ("list/watch backoff: reset after seconds", _BACKOFF.reset_after_seconds, 120.0),
    ("event-loop lag: beat seconds", lag.BEAT_SECONDS, 0.25),
    ("event-loop lag: warn seconds", lag.WARN_SECONDS, 1.0),
    ("shutdown watchdog: margin seconds", signals.WATCHDOG_MARGIN_SECONDS, 5.0),
    ("workqueue: heartbeat seconds", delays.HEARTBEAT_SECONDS, 10.0),
    ("workqueue: low priority", workqueue.LOW_PRIORITY, -100),
    ("workqueue metrics: priorities with a label", queuemetrics.MAX_PRIORITIES, 25),
    ("workqueue metrics: buckets", len(queuemetrics.BUCKETS), 12),
    ("workqueue metrics: first bucket seconds", queuemetrics.BUCKETS[0], 1e-8),
    ("workqueue metrics: last bucket seconds", queuemetrics.BUCKETS[-1], 1e3),
    ("retries: base seconds", ratelimiter.BASE_SECONDS, 0.005),
    ("retries: cap seconds", ratelimiter.CAP_SECONDS, 300.0),
    ("retries: jitter", ratelimiter.JITTER, 0.1),
]


@pytest.mark.parametrize("name, in_code, expected", FIGURES, ids=[name for name, _, _ in FIGURES])
def test_figure_should_be_as_agreed(name: str, in_code: float, expected: float) -> None:
    assert in_code == expected
