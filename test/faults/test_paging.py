"""Lists that come in pages, while the collection changes under them and the server forgets where we were."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from clusters.api import Api
from support.faultproxy.http1 import Answer, Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Respond, Rule, status
from support.figures import Figures, scaled
from support.observer import configmap, observing, until


def is_initial_stream(request: Request) -> bool:
    return request.is_watch and request.is_relist and "configmaps" in request.path


def is_page(request: Request) -> bool:
    return request.is_list and "configmaps" in request.path


@dataclass
class ChangingPages(Rule):
    """Change the collection before each page, and forget some lists at their third page."""

    change: Callable[[], None] = field(default=lambda: None)
    expiries: int = 0
    """How many third pages are still to expire."""
    pages: Counter[int] = field(default_factory=Counter, init=False)
    """How often each page was asked for."""
    _page: int = field(default=0, init=False)

    async def before(self, request: Request) -> Answer | None:
        """Change something; answer that the token has expired where that is due."""
        self._page = self._page + 1 if "continue" in request.query else 1
        self.pages[self._page] += 1
        await asyncio.to_thread(self.change)
        if self._page == 3 and self.expiries > 0:
            self.expiries -= 1
            headers = [("Content-Type", "application/json")]
            return Answer(410, headers, status(410, "Expired", "The provided continue parameter is too old"))
        return None


class Changes:
    """Makes and deletes objects at both ends of the collection, so that they fall into the first and the last page."""

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        self._path = path
        self._number = 0
        self._at_ends: list[str] = []

    def undo(self) -> None:
        while self._at_ends:
            self._api.delete(f"{self._path}/{self._at_ends.pop()}")

    def make(self) -> None:
        self._number += 1
        for name in (f"a-{self._number:06}", f"z-{self._number:06}"):
            self._api.create(self._path, configmap(name))
            self._at_ends.append(name)
        # What was there in a page that has been read, and in one that has not.
        while len(self._at_ends) > 4:
            self._api.delete(f"{self._path}/{self._at_ends.pop(0)}")


async def test_T12_a_paged_list_should_be_complete_whatever_happens_between_its_pages(
    proxy: FaultProxy, admin: Api, crowd: str, figures: Figures
) -> None:
    path = f"/api/v1/namespaces/{crowd}/configmaps"
    changes = Changes(admin, path)
    runs, equal, told_twice, lists = scaled(6, 100), 0, 0, 0
    slowest = 0.0
    for run in range(runs):
        pages = ChangingPages(is_page, change=changes.make, expiries=run % 3)
        proxy.rules = [Respond(is_initial_stream, status=422, body=status(422, "Invalid")), pages]
        async with observing(proxy.kubeconfig, crowd) as observer:
            server = await asyncio.to_thread(_state, admin, path)
            slowest = max(slowest, await until(lambda: observer.state() == server, 10))  # noqa: B023 - called at once
            equal += observer.state() == server
            told_twice += max(Counter(observer.log.adds).values()) - 1
        assert pages.expiries == 0
        assert pages.pages[3] == run % 3 + 1, "the pages that expire are asked for again"
        lists = max(lists, pages.pages[1])
    await asyncio.to_thread(changes.undo)
    figures.exactly("share of lists after which the store equals the server", equal / runs, 1)
    figures.exactly("objects added twice", told_twice, 0)
    figures.at_most("lists begun, where a token expired twice", lists, 3)
    figures.at_most("changes between pages seen after", slowest, 5, "s")


def _state(admin: Api, path: str) -> dict[str, str]:
    items = admin.get(f"{path}?labelSelector=fault-test")["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
