"""How the nodes of a job find each other: the port that they meet at, and the number that each goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import JOB_COMPLETION_INDEX
from ktrainer.framework.container import field_env_var

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

TRAINER_PORT: Final = 29500
"""The port of the node that leads, for all frameworks that need one."""

_INDEX_FIELD: Final = f"metadata.annotations['{JOB_COMPLETION_INDEX}']"


def rank_env_var(name: str) -> JsonObject:
    """A variable that holds the number of the node, from zero."""
    return field_env_var(name, _INDEX_FIELD)
