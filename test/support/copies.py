"""What the copier is asked for and what must come of it, as the API server shows it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

from clusters.api import Api, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from clusters.api import Object

_DOMAIN = "copier.example"
_ROLE = f"{_DOMAIN}/role"


def source(name: str, text: str = "0") -> Object:
    """A ConfigMap to be copied to `NAME-copy`."""
    metadata = {"name": name, "labels": {_ROLE: "source"}, "annotations": {f"{_DOMAIN}/to": f"{name}-copy"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


class Copies:
    """The sources and copies of one namespace, seen over a connection of their own; every method blocks."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._api = Api(kubeconfig)
        self._lock = threading.Lock()
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def add(self, *names: str) -> None:
        """Create sources."""
        with self._lock:
            for name in names:
                self._api.create(self.path, source(name))

    def change(self, name: str, text: str) -> None:
        """Change what a source holds."""
        with self._lock:
            self._api.merge(f"{self.path}/{name}", {"data": {"text": text}})

    def items(self) -> list[Object]:
        """Return all that belongs to the copier."""
        with self._lock:
            listed: list[Object] = self._api.get(f"{self.path}?labelSelector={_ROLE}")["items"]
        return listed

    def unfinished(self) -> list[str]:
        """Return the sources of which something is missing or old."""
        items = {each["metadata"]["name"]: each for each in self.items()}
        sources = [each for each in items.values() if each["metadata"]["labels"][_ROLE] == "source"]
        return [each["metadata"]["name"] for each in sources if not _is_copied(each, items)]

    def are_complete(self) -> bool:
        """Return whether nothing is missing."""
        return not self.unfinished()

    def normalised(self) -> list[Object]:
        """Return all objects without what differs between two runs that come to the same."""
        return sorted((_normalised(each) for each in self.items()), key=lambda each: str(each["name"]))

    def duplicates(self) -> list[str]:
        """Return children that no living source owns, or of which a source has two."""
        items = self.items()
        uids = {each["metadata"]["uid"] for each in items if each["metadata"]["labels"][_ROLE] == "source"}
        seen: set[tuple[str, str]] = set()
        wrong = []
        for each in items:
            role = each["metadata"]["labels"][_ROLE]
            if role == "source":
                continue
            owner = each["metadata"]["ownerReferences"][0]["uid"]
            if owner not in uids or (owner, role) in seen:
                wrong.append(each["metadata"]["name"])
            seen.add((owner, role))
        return wrong


@asynccontextmanager
async def copies_in(kubeconfig: Path, namespace: str) -> AsyncIterator[Copies]:
    """Look at a namespace from a coroutine; reading certificates takes a while, and so is done in a thread."""
    with closing(await asyncio.to_thread(Copies, kubeconfig, namespace)) as copies:
        yield copies


@asynccontextmanager
async def churning(kubeconfig: Path, namespace: str, names: Sequence[str], per_second: float) -> AsyncIterator[None]:
    """Change one source after the other, in a thread, for as long as the context is open."""
    ended = threading.Event()

    def churn() -> None:
        with closing(Copies(kubeconfig, namespace)) as copies:
            number = 0
            while not ended.wait(1 / per_second):
                number += 1
                copies.change(names[number % len(names)], str(number))

    task = asyncio.create_task(asyncio.to_thread(churn), name="churn")
    try:
        yield
    finally:
        ended.set()
        await task


async def eventually(condition: Callable[[], bool], seconds: float, what: str, interval: float = 0.05) -> float:
    """Wait for a condition, asked in a thread, and return how long it took; raises AssertionError when it is not so."""
    began = time.monotonic()
    while not await asyncio.to_thread(condition):
        assert time.monotonic() - began < seconds, f"not so after {seconds:g} s: {what}"
        await asyncio.sleep(interval)
    return time.monotonic() - began


def holder_of(api: Api, namespace: str, lease: str) -> str | None:
    """Return who holds a lease; None where there is no such lease."""
    try:
        spec: dict[str, Any] = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}")["spec"]
    except Refused as refusal:
        if refusal.code != 404:
            raise
        return None
    return str(spec.get("holderIdentity", ""))


def _is_copied(item: Object, items: dict[str, Object]) -> bool:
    metadata = item["metadata"]
    name = metadata["annotations"][f"{_DOMAIN}/to"]
    copy, token = items.get(name), items.get(f"{name}-token")
    return (
        copy is not None
        and token is not None
        and copy["data"] == item["data"]
        and metadata["annotations"].get(f"{_DOMAIN}/copied") == item["data"]["text"]
    )


def _normalised(item: Object) -> Object:
    metadata = item["metadata"]
    owners = [{**each, "uid": "-"} for each in metadata.get("ownerReferences", [])]
    return {
        "name": metadata["name"],
        "labels": metadata["labels"],
        "annotations": metadata.get("annotations", {}),
        "owners": owners,
        "data": {name: "-" if name == "token" else text for name, text in item["data"].items()},
    }
