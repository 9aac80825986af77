"""A model of server-side apply on the status of a TrainJob: who owns which field, and what becomes of the others.

Lists are maps by their key, as in the CRD: conditions by type, jobsStatus by name. Applying removes what the manager
had applied before, no longer applies, and nobody else owns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
Json = dict[str, Any]

KEYS = {"conditions": "type", "jobsStatus": "name"}


@dataclass
class AppliedStatus:
    """A status that several managers write to."""

    fields: dict[Path, Any] = field(default_factory=dict)
    """The leaves, in the order of their arrival."""
    owners: dict[str, set[Path]] = field(default_factory=dict)

    def apply(self, manager: str, status: Json) -> None:
        """Apply a status with force."""
        wanted = flatten(status)
        kept_by_others = set().union(*(paths for name, paths in self.owners.items() if name != manager))
        for path in self.owners.get(manager, set()) - set(wanted) - kept_by_others:
            del self.fields[path]
        for path, value in wanted.items():
            if self.fields.get(path) != value:
                for name, paths in self.owners.items():
                    if name != manager:
                        paths.discard(path)
            self.fields[path] = value
        self.owners[manager] = set(wanted)

    def value(self) -> Json:
        """The status as JSON."""
        return unflatten(self.fields)


def flatten(status: Json) -> dict[Path, Any]:
    """The leaves of a status by path; the items of lists by their key."""
    leaves: dict[Path, Any] = {}
    for name, value in status.items():
        if name in KEYS:
            for item in value:
                leaves.update({(name, item[KEYS[name]], part): leaf for part, leaf in item.items()})
        else:
            leaves[(name,)] = value
    return leaves


def unflatten(leaves: dict[Path, Any]) -> Json:
    """The status with these leaves."""
    status: Json = {}
    for path, leaf in leaves.items():
        if len(path) == 1:
            status[path[0]] = leaf
        else:
            status.setdefault(path[0], {}).setdefault(path[1], {})[path[2]] = leaf
    return {name: list(value.values()) if name in KEYS else value for name, value in status.items()}
