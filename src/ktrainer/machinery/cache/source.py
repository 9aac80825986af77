"""Where an informer gets its objects from: a view of one resource, bound to whoever can list and watch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol

from ktrainer.client.selectors import EVERYTHING, Selectors
from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from ktrainer.kube.identity import Resource
    from ktrainer.machinery.cache.index import IndexFunction

PAGE_SIZE = 500
"""Objects per page of a list."""


class ListerWatcher(Protocol):
    """Reads collections from an API server."""

    async def list_page(  # noqa: PLR0913 - what the API takes
        self,
        resource: Resource,
        *,
        namespace: str = ...,
        selectors: Selectors = ...,
        limit: int = ...,
        continue_token: str = ...,
        resource_version: str = ...,
        metadata_only: bool = ...,
    ) -> bytes:
        """Return one page as sent; an empty resourceVersion asks for the newest state, by quorum."""
        ...

    def watch(  # noqa: PLR0913 - what the API takes
        self,
        resource: Resource,
        *,
        namespace: str = ...,
        selectors: Selectors = ...,
        resource_version: str,
        timeout_seconds: int,
        initial_events: bool = ...,
        metadata_only: bool = ...,
        idle_seconds: float | None,
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a stream of events, one line each.

        The stream raises StreamIdle when nothing comes for `idle_seconds`, and StreamExpired when it goes on well
        beyond `timeout_seconds`, the time at which the server is asked to end it.
        """
        ...


@dataclass(frozen=True, slots=True)
class View(Generic[T]):
    """What an informer shall show. Two views are equal when they show the same objects."""

    resource: Resource
    object_type: type[T] = field(compare=False)
    namespace: str = ""
    """Empty for all namespaces, and for resources that have none."""
    selectors: Selectors = EVERYTHING
    """Applied by the server. An object that no longer matches is reported as deleted although it still exists."""
    metadata_only: bool = False
    """Whether only the metadata is fetched; `spec` and `status` are then empty."""
    is_optional: bool = field(default=False, compare=False)
    """Whether we can do without the kind: while the server does not know it, the informer counts as synced, empty."""
    transform: Callable[[T], T] | None = field(default=None, compare=False)
    """Called once per object before anybody sees it, for example to drop what is not needed.

    Must not keep the object, nor change its name, uid or resourceVersion, and must be harmless when repeated.
    """
    indexers: Mapping[str, IndexFunction[T]] = field(default_factory=dict, compare=False)
    """What objects can be looked up by, besides their key."""

    def __post_init__(self) -> None:
        if self.namespace and not self.resource.namespaced:
            object.__setattr__(self, "namespace", "")

    @property
    def is_of_one(self) -> bool:
        """Whether it shows a single object, by its name."""
        return self.selectors.fields.startswith("metadata.name=")

    @property
    def name(self) -> str:
        """What logs and metrics call the view, such as `jobsets.jobset.x-k8s.io`; unique among views that differ."""
        resource = self.resource
        details = [
            self.namespace and f"namespace={self.namespace}",
            self.selectors.labels and f"labels={self.selectors.labels}",
            self.selectors.fields and f"fields={self.selectors.fields}",
            "metadata" if self.metadata_only else "",
        ]
        plain = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        return " ".join([plain, *filter(None, details)])


class Source(Generic[T]):
    """A view with the means to fetch it."""

    def __init__(self, view: View[T], lister_watcher: ListerWatcher) -> None:
        self.view = view
        self._lister_watcher = lister_watcher

    async def fetch_page(self, *, limit: int = PAGE_SIZE, continue_token: str = "") -> bytes:
        """Fetch a page of the newest state, or the page after the one that gave the token."""
        view = self.view
        return await self._lister_watcher.list_page(
            view.resource,
            namespace=view.namespace,
            selectors=view.selectors,
            limit=limit,
            continue_token=continue_token,
            resource_version="",
            metadata_only=view.metadata_only,
        )

    def watch(
        self, resource_version: str, *, initial_events: bool, timeout_seconds: int, idle_seconds: float | None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a stream that begins after the version or, with `initial_events`, with a state that is not older."""
        view = self.view
        return self._lister_watcher.watch(
            view.resource,
            namespace=view.namespace,
            selectors=view.selectors,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            initial_events=initial_events,
            metadata_only=view.metadata_only,
            idle_seconds=idle_seconds,
        )
