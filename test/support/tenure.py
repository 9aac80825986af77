"""Who led when, and who wrote meanwhile, by the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from support.replica import Replica
    from support.trail import Trail, Write


@dataclass(frozen=True)
class Tenure:
    """A time from which on one process leads, or nobody."""

    agent: str
    """Empty for nobody; an identity that is none of ours is its own agent."""
    began_at: float
    """Unix time: when the leader asked for the lease."""


def tenures_of(trail: Trail, replicas: Iterable[Replica]) -> list[Tenure]:
    """Return the tenures of a lease, in order."""
    agents: dict[str, str] = {}
    for replica in replicas:
        agents |= replica.identities()
    tenures: list[Tenure] = []
    for write in trail.writes("leases"):
        if write.is_success:
            holder, began_at = _holder_of(write)
            agent = agents.get(holder, holder)
            if not tenures or tenures[-1].agent != agent:
                tenures.append(Tenure(agent, began_at))
    return tenures


def strays(tenures: Sequence[Tenure], writes: Iterable[Write]) -> list[Write]:
    """Return the writes that succeeded although another process, or nobody, led when they were answered."""
    return [each for each in writes if each.is_success and _leader_at(tenures, each.answered_at) != each.agent]


def _leader_at(tenures: Sequence[Tenure], moment: float) -> str:
    return next((each.agent for each in reversed(tenures) if each.began_at <= moment), "")


def _holder_of(write: Write) -> tuple[str, float]:
    spec: Mapping[str, str] = write.body.get("spec", {}) if write.verb != "delete" else {}
    acquired = spec.get("acquireTime")
    is_taken = bool(spec.get("holderIdentity")) and acquired is not None
    began_at = datetime.fromisoformat(str(acquired)).timestamp() if is_taken else write.answered_at
    return spec.get("holderIdentity") or "", began_at
