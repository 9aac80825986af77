"""Proves from an audit log that the shipped roles are exactly what the manager needs.

    forbidden_in(events)          what the manager asked for and may not
    unused_in(rights, events)     what it may do and never did

The audit log must be of a run with the shipped roles alone, and for the second of one that tries everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gen_rbac
from deployment.account import NAMESPACE, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Event = dict[str, Any]

_AGENTS = ("kubernetes/unknown/ktrainer-", "kubernetes/unknown/leader-election")
_NO_FINALIZERS = "ownerReference refers to a resource you can't set finalizers on"


@dataclass(frozen=True, order=True)
class Right:
    """One verb for one resource, for some names or all, in one namespace or all."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()
    namespace: str = ""

    def covers(self, request: Right) -> bool:
        """Whether a request, which has at most one name, makes use of it."""
        return (
            (self.group, self.resource, self.verb) == (request.group, request.resource, request.verb)
            and (not self.names or (bool(request.names) and request.names[0] in self.names))
            and (not self.namespace or self.namespace == request.namespace)
        )


def shipped_rights() -> set[Right]:
    """What the shipped roles allow, apart from what no audit log can show."""
    implied = {
        (access.resource.group, f"{access.resource.plural}/{access.subresource}", verb)
        for access in gen_rbac.collect()
        if access.is_implied
        for verb in access.verbs
    }
    return {right for right in _rights(gen_rbac.FILE) if (right.group, right.resource, right.verb) not in implied}


def forbidden_in(events: Iterable[Event], user: str = USER) -> list[str]:
    """The requests that the manager was not allowed, as lines for people."""
    return sorted({_describe(event) for event in _of(events, user) if _is_forbidden(event)})


def unused_in(rights: Iterable[Right], events: Iterable[Event], user: str = USER) -> list[Right]:
    """The rights that no request of the manager made use of."""
    requests = {request for event in _of(events, user) for request in requests_of(event)}
    return sorted(right for right in rights if not any(right.covers(request) for request in requests))


def requests_of(event: Event) -> Iterator[Right]:
    """The rights that a request needed: more than one where it did more than one thing."""
    target = event.get("objectRef")
    if not target:
        return
    path = "/".join(filter(None, (target.get("resource", ""), target.get("subresource", ""))))
    verbs = [event["verb"]]
    if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201:
        # An apply that made the object.
        verbs.append("create")
    if event["verb"] == "watch" and "sendInitialEvents=true" in event["requestURI"]:
        # A list in the form of a watch; an API server that does not know it is asked for the list itself.
        verbs.append("list")
    names = (target["name"],) if target.get("name") else ()
    for verb in verbs:
        yield Right(target.get("apiGroup", ""), path, verb, names, target.get("namespace", ""))


def _rights(file: Path) -> Iterator[Right]:
    for role in gen_rbac.read(file):
        namespace = NAMESPACE if role["kind"] == "Role" else ""
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Right(group, resource, verb, tuple(rule.get("resourceNames", ())), namespace)


def _of(events: Iterable[Event], user: str) -> Iterator[Event]:
    # By its agent, too: tests may try things under the same name.
    return (
        event
        for event in events
        if event.get("user", {}).get("username") == user
        and any(agent in event.get("userAgent", "") for agent in _AGENTS)
    )


def _is_forbidden(event: Event) -> bool:
    decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
    # That an owner's finalizers may be changed is looked at when the request itself has been allowed.
    return decision == "forbid" or _NO_FINALIZERS in event.get("responseStatus", {}).get("message", "")


def _describe(event: Event) -> str:
    return f"{event['verb']} {event['requestURI'].partition('?')[0]}"
