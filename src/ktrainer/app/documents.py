"""Objects from files instead of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ktrainer.api.labels import GROUP
from ktrainer.kube.identity import GroupVersionKind
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.pruning import MODELS, prune

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import TypeVar

    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

    T = TypeVar("T")

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Document:
    """An object in a file."""

    file: str
    number: int
    """Which document of the file it is in, from one."""
    value: JsonObject

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of the object."""
        return GroupVersionKind.parse(str(self.value.get("apiVersion") or ""), str(self.value.get("kind") or ""))

    @property
    def name(self) -> str:
        """The name of the object; empty where it has none."""
        metadata = self.value.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""

    def created(self) -> tuple[JsonObject, list[str]]:
        """The object as an API server would create it, a copy, and the paths of the fields that it would drop.

        What is not of our kinds stays as it is.
        """
        value: JsonObject = copy_of(self.value)
        gvk = self.gvk
        if gvk.group != GROUP or gvk.kind not in MODELS:
            return value, []
        if "status" in MODELS[gvk.kind].model_fields:
            # What became of it elsewhere is of no interest here.
            value.pop("status", None)
        if isinstance(metadata := value.get("metadata"), dict):
            # Nothing is created in deletion.
            metadata.pop("deletionTimestamp", None)
        return value, prune(value, gvk.kind)

    def __str__(self) -> str:
        return f"{self.file}#{self.number}: {self.gvk.kind}/{self.name}"


class Unreachable(Exception):
    """The cluster that has to be asked cannot be."""


class DocumentReader:
    """Reads objects out of documents: what is not in them does not exist. It never waits."""

    def __init__(self, documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE) -> None:
        """`namespace` is that of objects that name none."""
        self._namespace = namespace
        self._documents = {
            (document.gvk.group, document.gvk.kind, self._namespace_of(document), document.name): document
            for document in documents
        }

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """A copy of the object, as it would be created; none where no document has it."""
        found = self._documents.get((resource.group, resource.kind, namespace if resource.namespaced else "", name))
        if found is None and not resource.namespaced:
            # The documents do not tell which kinds are namespaced.
            found = self._documents.get((resource.group, resource.kind, self._namespace, name))
        return found.created()[0] if found else None

    def _namespace_of(self, document: Document) -> str:
        metadata = document.value.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        return str(namespace or self._namespace)


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop; raises RuntimeError if it does wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits for something")
