"""Fetching the whole state page by page, without ever holding more than one page undecoded.

Every list asks for the newest state by quorum: a cached one may be older than what we have seen, and then time would
run backwards.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

import msgspec

from ktrainer.kube.errors import Expired
from ktrainer.machinery.cache.delta import Skip, Snapshot
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.reflector.events import Undecodable
from ktrainer.machinery.cache.reflector.jsonparts import elements_of, members_of
from ktrainer.machinery.cache.reflector.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder
    from ktrainer.machinery.cache.source import Source

ATTEMPTS = 2
"""How often a list is begun whose later pages are gone before we reach them."""


class _PageMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct, gc=False):
    kind: str
    metadata: _PageMeta
    items: list[msgspec.Raw] | None = None


class Lister(Generic[T]):
    """Lists one view."""

    def __init__(self, source: Source[T], objects: ObjectDecoder[T]) -> None:
        self._source = source
        self._objects = objects

    async def fetch(self, heard: Callable[[], None], mark: int) -> Snapshot[T]:
        """Fetch everything; `heard` is called for every page, and `mark` becomes the snapshot's.

        Raises ApiError, TransportError or Undecodable; what was fetched by then is dropped.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._fetch_pages(heard, mark)
            except Expired:
                # The pages are those of one moment, which the server has forgotten by now.
                continue
        return await self._fetch_pages(heard, mark)

    async def fetch_version(self) -> str:
        """Fetch the server's present version, at the cost of one object."""
        return _decode_page(await self._source.fetch_page(limit=1)).metadata.resource_version

    async def _fetch_pages(self, heard: Callable[[], None], mark: int) -> Snapshot[T]:
        objects: dict[ObjectKey, T] = {}
        unreadable: set[ObjectKey] = set()
        version, continue_token = "", ""
        while True:
            page = _decode_page(await self._source.fetch_page(continue_token=continue_token))
            heard()
            # All pages should have the version of the first; if not, the first is the safe one to watch from.
            version = version or page.metadata.resource_version
            await self._decode_items(page.items or [], objects, unreadable)
            continue_token = page.metadata.continue_token or ""
            if not continue_token:
                return Snapshot(objects, unreadable, version, mark)

    async def _decode_items(
        self, items: list[msgspec.Raw], objects: dict[ObjectKey, T], unreadable: set[ObjectKey]
    ) -> None:
        pace = Pace()
        for item in items:
            obj = self._objects.decode(item)
            if not isinstance(obj, Skip):
                objects[obj.key] = obj
            elif obj.key is not None:
                unreadable.add(obj.key)
            if pace.is_slice_over(memoryview(item).nbytes):
                await asyncio.sleep(0)
        await asyncio.sleep(0)


def _decode_page(body: bytes) -> _Page:
    try:
        try:
            page = msgspec.json.decode(body, type=_Page)
        except RecursionError:
            page = _decode_deep_page(body)
    except ValueError as error:
        raise Undecodable(f"not a list: {error}") from error
    if not page.kind.endswith("List") or not page.metadata.resource_version:
        raise Undecodable(f"not a list, but a {page.kind} with version {page.metadata.resource_version!r}")
    return page


def _decode_deep_page(body: bytes) -> _Page:
    members = members_of(body)
    return _Page(
        kind=msgspec.json.decode(members.get("kind", b""), type=str),
        metadata=msgspec.json.decode(members.get("metadata", b""), type=_PageMeta),
        items=[msgspec.Raw(item) for item in elements_of(members.get("items", b"[]"))],
    )
