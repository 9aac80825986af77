"""The metrics of leader election, the first two under the names that client-go gave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class LeaderMetrics:
    """The metrics of one election; all series exist from the start."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        self.is_leading = Gauge(
            "leader_election_master_status", "Whether this process leads (1) or not (0).", ["name"], registry=registry
        ).labels(name)
        self.slow_paths = Counter(
            "leader_election_slowpath",
            "Renewals that needed more than the one request that they usually take.",
            ["name"],
            registry=registry,
        ).labels(name)
        self.is_reachable = Gauge(
            "ktrainer_leader_election_reachable",
            "Whether the last attempt got an intelligible answer about the lease (1) or not (0).",
            ["name"],
            registry=registry,
        ).labels(name)
