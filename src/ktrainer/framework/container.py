"""A container of a pod template, and how variables, ports and mounts get into it.

A `Container` is a view: what is written to it is in the template. Lists merge by the key that Kubernetes gives them;
what is replaced keeps its place.

Parity: pkg/apply of the original, its odd rule for ports included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ktrainer.framework.errors import EnvConflict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.kube.jsonvalue import JsonObject


class EnvLog:
    """Which plugin set which variable of which container, so that none is overruled in silence."""

    def __init__(self) -> None:
        self.writer = ""
        """The plugin that runs at the moment."""
        self._written: dict[tuple[int, str], tuple[str, JsonObject]] = {}
        # Keyed by the identity of the container's dict, which lives as long as the template.

    def note(self, container: JsonObject, entry: JsonObject) -> None:
        """Note that the current plugin sets a variable; raises EnvConflict if another set it to something else."""
        key = (id(container), entry["name"])
        writer, before = self._written.setdefault(key, (self.writer, entry))
        if writer != self.writer and before != entry:
            raise EnvConflict(
                f"container {container['name']}: the variable {entry['name']} was already set otherwise "
                f"by the plugin {writer}"
            )


class Container:
    """A container or init container of a pod template."""

    __slots__ = ("_log", "spec")

    def __init__(self, spec: JsonObject, log: EnvLog) -> None:
        self.spec = spec
        """The container in the template, as plain JSON."""
        self._log = log

    @property
    def name(self) -> str:
        """The name of the container."""
        name: str = self.spec["name"]
        return name

    @property
    def resources(self) -> JsonObject:
        """The container's ResourceRequirements; empty where it has none."""
        return self.spec.get("resources") or {}

    @property
    def mounts(self) -> list[JsonObject]:
        """The container's volume mounts."""
        return self.spec.get("volumeMounts") or []

    def env_value(self, name: str) -> str | None:
        """The literal value of a variable; none where it is absent or taken from elsewhere."""
        entries = self.spec.get("env") or []
        return next((entry.get("value") for entry in entries if entry["name"] == name), None)

    def set_env(self, *entries: JsonObject) -> None:
        """Set variables that the current plugin decides on; raises EnvConflict when another decided otherwise."""
        for entry in entries:
            self._log.note(self.spec, entry)
        self.merge_env(entries)

    def merge_env(self, entries: Iterable[JsonObject]) -> None:
        """Set variables that come from the user and therefore win."""
        _upsert(self.spec, "env", entries, "name")

    def add_mounts(self, *mounts: JsonObject) -> None:
        """Mount volumes; another mount at the same path makes way."""
        _upsert(self.spec, "volumeMounts", mounts, "mountPath")

    def expose(self, port: int) -> None:
        """Open a port without a name: in place of the first that is the same or has no name either, else at the end."""
        ports = self.spec.get("ports") or []
        for position, present in enumerate(ports):
            if present.get("containerPort") == port or not present.get("name"):
                ports[position] = {"containerPort": port}
                return
        self.spec["ports"] = [*ports, {"containerPort": port}]


def add_volumes(pod_spec: JsonObject, *volumes: JsonObject) -> None:
    """Give a pod volumes; another one of the same name makes way."""
    _upsert(pod_spec, "volumes", volumes, "name")


def env_var(name: str, value: str) -> JsonObject:
    """A variable with a literal value."""
    return {"name": name, "value": value}


def field_env_var(name: str, field_path: str) -> JsonObject:
    """A variable that the kubelet fills from a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field_path}}}


def _upsert(owner: JsonObject, field: str, items: Iterable[JsonObject], key: str) -> None:
    merged: list[JsonObject] | None = None
    places: dict[Any, int] = {}
    for item in items:
        if merged is None:
            merged = owner[field] = list(owner.get(field) or ())
            # Of two with the same key, the first counts.
            places = {present.get(key): position for position, present in reversed(list(enumerate(merged)))}
        place = places.setdefault(item[key], len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = item
