"""The checks that tell whether this process does its work: its caches and its part in leader election.

None of them fails merely because the API server is down: a restart would not bring it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ktrainer.machinery.serving.health import Unhealthy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.election.leader import LeaseElector

DEAF_SECONDS = 900.0
"""An informer that has heard nothing for so long is deaf, provided that the API server answers others."""

SILENCE_SECONDS = 120.0
"""When nobody has had an answer for so long, the API server does not answer."""

RENEWAL_TOLERANCE_SECONDS = 20.0
"""How long after the end of the lease a leader may believe to lead; longer can only be a fault of ours."""


class Listening(Protocol):
    """As much of an informer as tells whether it is deaf."""

    @property
    def last_activity_at(self) -> float:
        """When the server was last heard of, in monotonic seconds."""
        ...

    @property
    def last_error(self) -> str | None:
        """What went wrong last; None while all is well."""
        ...

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know the kind."""
        ...


class DeafnessCheck:
    """Healthz: every informer has heard of the server lately, or the server is down, or does not know the kind."""

    def __init__(
        self, informers: Callable[[], Mapping[str, Listening]], answered_at: Callable[[], float | None], clock: Clock
    ) -> None:
        """`informers` are by name. `answered_at` tells when any other request last had an answer, if ever one had."""
        self._informers = informers
        self._answered_at = answered_at
        self._clock = clock
        self._answering_since: float | None = None
        """Since when the server is known to answer, seen from here; None while it does not."""

    def __call__(self) -> None:
        """Raise Unhealthy when an informer is deaf."""
        now = self._clock.monotonic()
        informers = self._informers()
        answers = [self._answered_at(), *(informer.last_activity_at for informer in informers.values())]
        if now - max((at for at in answers if at is not None), default=now) > SILENCE_SECONDS:
            self._answering_since = None
            return
        if self._answering_since is None:
            self._answering_since = now
        deaf = [
            f"{name} has heard nothing for {now - informer.last_activity_at:.0f} s: {informer.last_error or 'no error'}"
            for name, informer in sorted(informers.items())
            if self._is_deaf(informer, self._answering_since, now)
        ]
        if deaf:
            raise Unhealthy("; ".join(deaf))

    def _is_deaf(self, informer: Listening, answering_since: float, now: float) -> bool:
        # After an outage each informer gets its time to come back.
        return not informer.is_absent and now - max(informer.last_activity_at, answering_since) > DEAF_SECONDS


class Syncing(Protocol):
    """As much of a cache as tells whether it is complete."""

    def unsynced(self) -> Mapping[str, str]:
        """Return the names of informers that are not complete yet, with what keeps each of them."""
        ...


def check_synced(cache: Syncing) -> None:
    """Readyz: raise Unhealthy when an informer has not synced; names it and its trouble."""
    unsynced = cache.unsynced()
    if unsynced:
        raise Unhealthy("; ".join(f"{name} has not synced: {trouble}" for name, trouble in sorted(unsynced.items())))


def check_renewal(elector: LeaseElector) -> None:
    """Healthz: raise Unhealthy when a leader has not noticed that its lease has ended."""
    age = elector.renewal_age_seconds
    if age is not None and age > elector.settings.times.lease_seconds + RENEWAL_TOLERANCE_SECONDS:
        raise Unhealthy(f"the lease was renewed {age:.0f} s ago, and nobody noticed")


def check_election_reachable(elector: LeaseElector) -> None:
    """Readyz: raise Unhealthy while no attempt has had an answer about the lease."""
    if elector.answered_at is None:
        raise Unhealthy(f"nothing is known about the lease: {elector.last_error or 'no answer yet'}")
