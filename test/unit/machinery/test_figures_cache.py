"""The figures of list and watch in one place, so that none of them changes unnoticed."""

from ktrainer.aio.backoff import BackoffPolicy
from ktrainer.machinery.cache import cache, fifo, informer, once, source, stringpool
from ktrainer.machinery.cache.reflector import endings, intake, listing, pace, reflector, watching
from ktrainer.machinery.queue import workqueue

FIGURES = {
    "seconds of the first delay before a new list": (BackoffPolicy().initial_seconds, 0.8),
    "growth of that delay": (BackoffPolicy().factor, 2.0),
    "its cap in seconds": (BackoffPolicy().cap_seconds, 30.0),
    "its jitter": (BackoffPolicy().jitter, 1.0),
    "seconds without a failure after which it begins anew": (BackoffPolicy().reset_after_seconds, 120.0),
    "objects in a page": (source.PAGE_SIZE, 500),
    "attempts at a list whose pages expire": (listing.ATTEMPTS, 2),
    "least seconds of a watch": (watching.MIN_SECONDS, 300),
    "most seconds of a watch": (watching.MAX_SECONDS, 600),
    "seconds below which a watch is short": (endings.SHORT_SECONDS, 1.0),
    "seconds of silence until a watch is dead": (reflector.IDLE_SECONDS, 80.0),
    "silent watches that prove that there are no bookmarks": (reflector.SILENT_EXPIRIES, 2),
    "seconds to wait for the server's version": (reflector.PROBE_SECONDS, 5.0),
    "least seconds between questions for a missing kind": (reflector.ABSENT_MIN_SECONDS, 8.0),
    "most seconds between questions for a missing kind": (reflector.ABSENT_MAX_SECONDS, 11.0),
    "most seconds that a server may ask us to wait": (reflector.RETRY_AFTER_MAX_SECONDS, 60.0),
    "seconds between reminders of a missing state": (intake.REMINDER_SECONDS, 10.0),
    "changes that may wait": (fifo.LIMIT, 50_000),
    "seconds between resyncs": (informer.RESYNC_SECONDS, 36_000.0),
    "jitter of resyncs": (informer.RESYNC_JITTER, 0.1),
    "seconds that the first state may take": (cache.SYNC_SECONDS, 120.0),
    "steps in a slice": (pace.SLICE_STEPS, 64),
    "bytes in a slice": (pace.SLICE_BYTES, 512 * 1024),
    "things that are said once": (once.LIMIT, 1000),
    "strings that are shared": (stringpool.LIMIT, 4096),
    "priority of what nobody waits for": (workqueue.LOW_PRIORITY, -100),
}


def test_the_figures_should_be_these() -> None:
    assert {name: figure for name, (figure, _) in FIGURES.items()} == {
        name: wanted for name, (_, wanted) in FIGURES.items()
    }


def test_a_dead_peer_should_be_noticed_within_the_time_that_we_promise() -> None:
    assert 75 <= reflector.IDLE_SECONDS <= 90
    assert reflector.IDLE_SECONDS + reflector.PROBE_SECONDS <= 95
