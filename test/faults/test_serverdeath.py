"""The API server dies without a word, and comes back."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from clusters.api import Api
from clusters.audit import events_of
from clusters.folder import Folder
from ktrainer.client.selectors import Selectors
from ktrainer.machinery.cache.source import View
from support.components import Components
from support.figures import Figures
from support.observer import CONFIGMAPS, ConfigMap, Observer, configmap, observing, until

INFORMERS = 6
WINDOW_SECONDS = 30.0
REQUESTS, LISTS = "rest_client_requests_total", "reflector_lists_total"


async def test_T05_informers_should_come_back_gently_after_the_api_server_was_killed(
    cluster: Folder, components: Components, admin: Api, crowd: str, crowd_size: int, figures: Figures
) -> None:
    path = f"/api/v1/namespaces/{crowd}/configmaps"
    selectors = [Selectors(labels=f"fault-test={number}") for number in range(INFORMERS)]
    views = [View(CONFIGMAPS, ConfigMap, namespace=crowd, selectors=each) for each in selectors]
    async with observing(cluster.kubeconfig("admin"), views=views) as observer:
        sizes = [len(informer.store) for informer in observer.informers]
        assert sum(sizes) == crowd_size
        adds, requests, relists = len(observer.log.adds), _count(observer, REQUESTS), _count(observer, LISTS)
        killed_at, killed_monotonic = datetime.now(UTC), time.monotonic()
        await asyncio.to_thread(components.kill, "kube-apiserver")
        admin.close()
        await asyncio.to_thread(components.start, "kube-apiserver")
        ready_at = time.monotonic()
        for number in range(INFORMERS):
            await asyncio.to_thread(admin.create, path, configmap(f"after-{number}", str(number)))
        await until(lambda: [len(informer.store) - 1 for informer in observer.informers] == sizes, 90)
        synced = time.monotonic() - ready_at
        await asyncio.sleep(WINDOW_SECONDS - (time.monotonic() - killed_monotonic))
        requests, relists = _count(observer, REQUESTS) - requests, _count(observer, LISTS) - relists
        for number in range(INFORMERS):
            await asyncio.to_thread(admin.delete, f"{path}/after-{number}")
    lists = await asyncio.to_thread(_lists_by_selector, cluster, killed_at)
    figures.at_most("requests in 30 s from the kill, refused ones included", requests, 60)
    figures.at_most("lists per informer", max(lists.values(), default=0), 2)
    figures.exactly("lists that the server saw and informers did not count", sum(lists.values()) - relists, 0)
    figures.at_most("all informers synced after the server was ready", synced, 60, "s")
    figures.exactly("adds told besides those of new objects", len(observer.log.adds) - adds - INFORMERS, 0)
    figures.exactly(
        "deletes of what was never deleted", sum(not name.startswith("after") for name, *_ in observer.log.deletes), 0
    )


def _count(observer: Observer, name: str) -> float:
    samples = (sample for family in observer.registry.collect() for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == name)


def _lists_by_selector(cluster: Folder, since: datetime) -> Counter[str]:
    """Return how often the server was asked for the whole state, by the selectors that tell informers apart."""
    asked: dict[str, dict[str, str]] = {}
    for event in events_of(cluster.file("audit", "audit.log"), "admin"):
        if datetime.fromisoformat(event["requestReceivedTimestamp"]) < since:
            continue
        if event.get("userAgent", "").endswith("/observer"):
            asked[event["auditID"]] = dict(parse_qsl(urlsplit(event["requestURI"]).query))
    whole = [
        query
        for query in asked.values()
        if "sendInitialEvents" in query or ("limit" in query and "continue" not in query)
    ]
    return Counter(query["labelSelector"] for query in whole)
