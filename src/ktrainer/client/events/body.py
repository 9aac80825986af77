"""What an event looks like on the wire (events.k8s.io/v1), within the limits that an API server sets. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktrainer.kube.identity import Resource
from ktrainer.kube.timestamp import format_micro_time

if TYPE_CHECKING:
    from datetime import datetime

    from ktrainer.kube.jsonvalue import JsonObject

EVENTS = Resource("events.k8s.io", "v1", "Event", "events", namespaced=True)

NOTE_BYTES = 1024
NAME_CHARACTERS = 253
WORD_CHARACTERS = 128
"""The limit of reason, action and reporting instance."""

_CUT = "..."
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """An object as an event names it. Its resourceVersion is left out, since then no two events would be alike."""

    api_version: str
    kind: str
    namespace: str
    """Empty for an object of the cluster."""
    name: str
    uid: str

    @property
    def event_namespace(self) -> str:
        """The namespace of events about this object."""
        return self.namespace or "default"


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who says so."""

    controller: str
    """A qualified name, such as trainer.kubeflow.org/manager."""
    instance: str
    """The process."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that happened. Equal ones are the same thing again."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    """Within the limit."""


def build_event(occurrence: Occurrence, reporter: Reporter, name: str, at: datetime) -> JsonObject:
    """The first event about something."""
    regarding = occurrence.regarding
    reference = {
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "namespace": regarding.namespace,
        "name": regarding.name,
        "uid": regarding.uid,
    }
    reason = occurrence.reason[:WORD_CHARACTERS]
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": regarding.event_namespace},
        "eventTime": format_micro_time(at),
        "reportingController": reporter.controller,
        "reportingInstance": reporter.instance[:WORD_CHARACTERS],
        "regarding": {key: value for key, value in reference.items() if value},
        "type": occurrence.type,
        "reason": reason,
        "action": occurrence.action[:WORD_CHARACTERS] or reason,
        "note": occurrence.note,
    }


def build_series(count: int, at: datetime) -> JsonObject:
    """What an event says about its repetitions."""
    return {"count": count, "lastObservedTime": format_micro_time(at)}


def build_name(regarding: ObjectReference, nanoseconds: int) -> str:
    """A name for an event that says what it is about, and is unique as long as the time is."""
    suffix = f"{nanoseconds:x}"
    prefix = regarding.name[: NAME_CHARACTERS - len(suffix) - 1].rstrip("-.")
    return f"{prefix}.{suffix}" if _DNS_NAME.fullmatch(prefix) else f"event.{suffix}"


def cut_note(note: str) -> str:
    """A note within the limit, which counts bytes; no character is cut in two."""
    encoded = note.encode("utf-8", "replace")
    if len(encoded) > NOTE_BYTES:
        return encoded[: NOTE_BYTES - len(_CUT)].decode("utf-8", "ignore") + _CUT
    return encoded.decode()
