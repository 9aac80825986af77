"""How many nodes a job may have where their number can change while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import MlPolicy


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """The least and the greatest number of nodes."""

    least: int
    most: int

    def __contains__(self, count: int) -> bool:
        return self.least <= count <= self.most

    def __str__(self) -> str:
        return f"{self.least}:{self.most}"


def node_bounds_of(policy: MlPolicy | None) -> NodeBounds | None:
    """The bounds that an elastic runtime sets, one node at least; none where the number of nodes is fixed."""
    elastic = policy.torch.elastic_policy if policy and policy.torch else None
    if elastic is None:
        return None
    least = elastic.min_nodes or 1
    return NodeBounds(least, max(least, elastic.max_nodes or 1))
