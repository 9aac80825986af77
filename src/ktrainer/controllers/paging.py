"""Live lists, page by page: for what no cache has, or what must be known surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from ktrainer.client.selectors import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ktrainer.client.selectors import Selectors
    from ktrainer.kube.identity import Resource
    from ktrainer.machinery.cache.source import ListerWatcher

T = TypeVar("T")

PAGE_SIZE: Final = 200
"""Objects of a page: so few are decoded in a few milliseconds."""


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T]):
    """A part of a list, as the API server sends it."""

    metadata: _ListMeta = _ListMeta()
    items: list[T] = []


async def pages_of(
    lister: ListerWatcher,
    resource: Resource,
    decoder: msgspec.json.Decoder[Page[T]],
    *,
    namespace: str,
    selectors: Selectors = EVERYTHING,
) -> AsyncGenerator[list[T], None]:
    """What is there now, a page at a time; each is asked for when it is wanted. Raises what the client raises.

    Who stops early closes it: `async with aclosing(...)`.
    """
    token = ""
    while True:
        answer = await lister.list_page(
            resource, namespace=namespace, selectors=selectors, limit=PAGE_SIZE, continue_token=token
        )
        page = decoder.decode(answer)
        yield page.items
        token = page.metadata.continue_
        if not token:
            return
