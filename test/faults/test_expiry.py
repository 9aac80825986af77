"""A server that forgets its past at once: whatever is watched from has expired, over and over."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from clusters.api import Api
from clusters.folder import Folder
from ktrainer.aio.backoff import BackoffPolicy
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Respond, RewriteLines, Rule, error_event, status
from support.figures import Figures, scaled
from support.observer import ConfigMap, Observer, configmap, observing, until
from support.population import populate

SEEN = 60
"""Objects in each namespace that are there before the storm; half of them are deleted in it."""

EXPIRED = error_event(410, "Expired", "too old resource version")
END = b"k8s.io/initial-events-end"


def most_lists(seconds: float) -> int:
    """Return how often an informer may list in so many seconds, when each list leads nowhere: delays have a minimum."""
    policy = BackoffPolicy()
    delays = (min(policy.initial_seconds * policy.factor**number, policy.cap_seconds) for number in itertools.count())
    return sum(1 for _ in itertools.takewhile(lambda at: at <= seconds, itertools.accumulate(delays)))


class Lives:
    """How often each uid was told to be there, and to be gone without having been seen to go."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.tombstones: Counter[str] = Counter()

    def on_add(self, obj: ConfigMap, is_initial: bool) -> None:
        self.begun[obj.metadata.uid] += 1

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        pass

    def on_delete(self, obj: ConfigMap, is_final_state_unknown: bool) -> None:
        self.ended[obj.metadata.uid] += 1
        self.tombstones[obj.metadata.uid] += is_final_state_unknown


async def test_T09_a_storm_of_expired_versions_should_be_met_with_patience(
    proxy: FaultProxy, cluster: Folder, admin: Api, namespace: str, figures: Figures
) -> None:
    # Where streams of the first state are refused, pages are listed; both ways have to stand the storm.
    with _another_namespace(admin, namespace) as paged:
        for each in (namespace, paged):
            await populate(cluster.kubeconfig("admin"), each, (f"seen-{number:03}" for number in range(SEEN)))
        refusal = Respond(lambda request: _is_initial(request, paged), status=422, body=status(422, "Invalid"))
        proxy.rules = [refusal]
        lives = Lives()
        async with observing(proxy.kubeconfig, namespace, paged) as observer:
            for informer in observer.informers:
                await informer.add_handler(lives).wait_synced()
            proxy.rules = [refusal, *_storm_at(namespace)]
            since, began_at = len(proxy.seen), time.monotonic()
            proxy.cut_all()
            deleted = await _churn(admin, (namespace, paged), scaled(20, 120))
            in_storm = [each.request for each in proxy.seen[since:] if each.status == 200]
            lasted = time.monotonic() - began_at
            proxy.rules = [refusal]
            alive = await asyncio.to_thread(_uids, admin, (namespace, paged))
            converged = await until(lambda: _stored(observer) == alive, 75)
    lists = Counter(request.path for request in in_storm if request.is_relist)
    figures.at_least("informers that listed in the storm", len(lists), 2)
    figures.at_most("lists per informer in the storm", max(lists.values()), min(10, most_lists(lasted)))
    figures.at_least("objects deleted in the storm that had been seen", len(deleted), SEEN)
    blind = sum(lives.tombstones[uid] == lives.ended[uid] == 1 for uid in deleted)
    figures.exactly("share of them with exactly one tombstone", blind / len(deleted), 1)
    wrong = sum(count != 1 or lives.ended[uid] != (uid not in alive) for uid, count in lives.begun.items())
    figures.exactly("objects with a wrong number of adds or deletes", wrong, 0)
    figures.at_most("converged after the storm", converged, 65, "s")


@contextmanager
def _another_namespace(admin: Api, namespace: str) -> Iterator[str]:
    name = f"{namespace}-paged"
    admin.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


def _is_initial(request: Request, namespace: str) -> bool:
    return request.is_watch and request.is_relist and f"/{namespace}/" in request.path


def _storm_at(streamed: str) -> list[Rule]:
    """The namespace gets its state by streams, which expire as soon as they become watches; other watches at once."""
    return [
        RewriteLines(
            lambda request: _is_initial(request, streamed),
            rewrite=lambda line: [line, EXPIRED] if END in line else [line],
        ),
        Respond(lambda request: request.is_watch, status=200, body=EXPIRED),
    ]


async def _churn(admin: Api, namespaces: tuple[str, ...], seconds: float) -> set[str]:
    """Delete half of what was there and all but the newest of what comes; return the uids of the former."""
    paths = [f"/api/v1/namespaces/{namespace}/configmaps" for namespace in namespaces]
    began_at = time.monotonic()
    deleted: set[str] = set()

    def change(number: int) -> None:
        for path in paths:
            admin.create(path, configmap(f"new-{number}"))
            if number:
                admin.delete(f"{path}/new-{number - 1}")
            if number < SEEN // 2:
                deleted.add(admin.delete(f"{path}/seen-{number:03}")["details"]["uid"])

    for number in itertools.count():
        if time.monotonic() - began_at >= seconds and number >= SEEN // 2:
            return deleted
        await asyncio.to_thread(change, number)
        await asyncio.sleep(0.25)
    raise AssertionError


def _uids(admin: Api, namespaces: tuple[str, ...]) -> set[str]:
    lists = [admin.get(f"/api/v1/namespaces/{each}/configmaps?labelSelector=fault-test") for each in namespaces]
    return {item["metadata"]["uid"] for each in lists for item in each["items"]}


def _stored(observer: Observer) -> set[str]:
    return {each.metadata.uid for informer in observer.informers for each in informer.store.list()}
