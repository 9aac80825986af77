"""Answers that make no sense: errors without a reason, pages of HTML, nothing at all, half a document."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from clusters.api import Api
from clusters.folder import Folder
from support.copies import churning, copies_in, eventually
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Respond, Rule, Truncate, status
from support.figures import Figures, scaled
from support.replica import Replica, Settings, running

LEASE = "copier"
SOURCES = [f"source-{number}" for number in range(10)]
SHARE = 0.2
CODES = (500, 502, 503, 504)
BODIES = (b"<html><body><h1>Bad Gateway</h1></body></html>", b"", status(500, "InternalError")[:-30])


def build_rules(random: Random) -> list[Rule]:
    """Return rules that together strike a share of all requests, each as often as any other."""
    count = len(CODES) * len(BODIES) + 1

    def chance(number: int) -> Callable[[Request], bool]:
        # Of the requests that the rules before have left.
        share = SHARE / count / (1 - SHARE * number / count)
        return lambda _: random.random() < share

    answers = [(code, body) for code in CODES for body in BODIES]
    responds = [Respond(chance(number), status=code, body=body) for number, (code, body) in enumerate(answers)]
    return [*responds, Truncate(chance(len(responds)))]


async def test_T14_answers_without_sense_should_be_survived(
    proxy: FaultProxy, cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - to repeat a run that failed
    kubeconfig = cluster.kubeconfig("admin")
    replica = Replica(Settings(proxy.kubeconfig, namespace, lease=LEASE, workers=2), tmp_path, "one")
    async with copies_in(kubeconfig, namespace) as copies:
        await asyncio.to_thread(copies.add, *SOURCES)
        async with running(replica):
            await eventually(copies.are_complete, 60, "all is copied")
            begin = len(proxy.seen)
            proxy.rules = rules = build_rules(Random(seed))
            async with churning(kubeconfig, namespace, SOURCES, per_second=5):
                await asyncio.sleep(scaled(20, 180))
            proxy.rules = ()
            struck = sum(rule.struck for rule in rules) / len(proxy.seen[begin:])
            # Few requests in a short run: chance may take half of the share, hardly more.
            figures.at_least("share of requests that were struck", struck, SHARE / 2)
            seconds = await eventually(copies.are_complete, 60, "all is copied after the storm")
            figures.at_most("all copied after the storm", seconds, 30, "s")
            log = await asyncio.to_thread(replica.log)
            crashes = [each for each in log if each.get("level") == "critical" or "Traceback" in str(each)]
            figures.exactly("crashes", len(crashes) + (not replica.is_running), 0)
            assert replica.is_leading, replica.tail()
    lease = admin.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}")
    figures.exactly("changes of the leader", lease["spec"]["leaseTransitions"], 0)
