"""What one candidate knows of a lease, and what that allows it to do: the decisions of leader election, without I/O.

How long another's lease is valid is judged only by our own clock, since we first saw the present record: the times
inside a Lease come from other machines. How long ours is valid counts from when the request was *sent* that last took
or renewed it, and only up to the renew deadline. Since that is shorter than the lease, which others count from later,
we stop before anybody else may start, whatever happens to messages and whoever is suspended. Only clocks of very
different speeds could break that: with the usual durations, one that runs half as fast again as the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.election.lease import Lease

JITTER = 1.2
"""Between two attempts to acquire, a candidate waits uniformly [d, d * (1 + JITTER)) for a retry period of d."""

EXPIRY_JITTER_SECONDS = 0.1
"""A candidate that waits for a lease to expire looks again within this time after that."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The durations of an election."""

    lease_seconds: int = 15
    """How long others wait after the last renewal that they saw. Whole seconds, as that is what a Lease can tell."""

    renew_deadline_seconds: float = 10.0
    """How long a leader may go on since it sent the last successful renewal."""

    retry_seconds: float = 2.0
    """The time between two renewals; the shortest between two attempts to acquire."""

    def __post_init__(self) -> None:
        if self.retry_seconds <= 0:
            raise ValueError(f"the retry period must be positive: {self.retry_seconds}")
        if self.renew_deadline_seconds <= JITTER * self.retry_seconds:
            raise ValueError(
                f"the renew deadline ({self.renew_deadline_seconds} s) must be more than {JITTER} times"
                f" the retry period ({self.retry_seconds} s)"
            )
        if self.lease_seconds <= self.renew_deadline_seconds:
            raise ValueError(
                f"the lease duration ({self.lease_seconds} s) must be longer than"
                f" the renew deadline ({self.renew_deadline_seconds} s)"
            )

    @property
    def request_seconds(self) -> float:
        """How long one request may take, so that one that hangs does not use up the deadline."""
        return max(1.0, self.renew_deadline_seconds / 2)


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease to hold, as whom, and for how long at a time."""

    key: ObjectKey
    """The Lease object."""

    identity: str
    """Who we are; must be unique to this start of this process."""

    times: LeaseTimes = LeaseTimes()

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("a candidate needs an identity")


class Election:
    """The view of one candidate. Plain and atomic; every time is of the candidate's own monotonic clock."""

    def __init__(self, settings: LeaseSettings, random: Random) -> None:
        self.settings = settings
        self._random = random
        self.lease: Lease | None = None
        """The Lease as it was last seen, or None when it did not exist or nobody has looked yet."""
        self._seen_at = 0.0
        """When the present record was first seen."""
        self.renewed_at: float | None = None
        """When the request was sent that last took or renewed the lease; None while we do not lead."""

    def observe(self, lease: Lease, now: float) -> None:
        """Note what the server showed."""
        if self.lease is None or lease.spec != self.lease.spec:
            self._seen_at = now
        self.lease = lease

    def observe_absence(self) -> None:
        """Note that there is no such Lease."""
        self.lease = None

    def won(self, lease: Lease, sent_at: float, now: float) -> None:
        """Note that the server took our claim, which was sent at `sent_at`.

        An answer that comes after the renew deadline makes nobody the leader: others may have taken over meanwhile.
        """
        self.observe(lease, now)
        if now - sent_at < self.settings.times.renew_deadline_seconds:
            self.renewed_at = sent_at

    def resign(self) -> None:
        """Stop leading; whatever the server says about the lease."""
        self.renewed_at = None

    def leads_for(self, now: float) -> float:
        """Return for how many seconds we still lead if no renewal succeeds; 0 when we do not lead."""
        if self.renewed_at is None:
            return 0.0
        return max(0.0, self.renewed_at + self.settings.times.renew_deadline_seconds - now)

    @property
    def is_ours(self) -> bool:
        """Whether the Lease names us, as far as we have seen."""
        return self.lease is not None and self.lease.holder == self.settings.identity

    def held_for(self, now: float) -> float:
        """Return for how many seconds the lease is another's, as far as we have seen; 0 when we may claim it.

        A holder that cannot be understood is somebody else, and a duration that cannot be understood is ours.
        """
        if self.lease is None or self.is_ours or self.lease.holder == "":
            return 0.0
        duration_seconds = self.lease.duration_seconds or self.settings.times.lease_seconds
        return max(0.0, self._seen_at + duration_seconds - now)

    def acquire_delay(self, now: float) -> float:
        """Return how long a candidate waits before its next attempt.

        Departs: upstream waits blindly, up to 4.4 s longer than the lease it waits for.
        """
        delay = self.settings.times.retry_seconds * (1 + JITTER * self._random.random())
        held_for = self.held_for(now)
        if held_for == 0.0:
            return delay
        return min(delay, held_for + EXPIRY_JITTER_SECONDS * self._random.random())
