"""The CPU time of an admission, from the bytes of the request to those of the answer, HTTP and TLS included."""

from __future__ import annotations

import asyncio
import http.client
import logging
import multiprocessing
import ssl
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import orjson
import structlog
from prometheus_client import CollectorRegistry

from benchmarks.command import build_parser, run
from benchmarks.figure import Figure
from benchmarks.render import RuntimeBytes, build_job, build_runtime
from ktrainer.aio.clock import SystemClock
from ktrainer.app.admission import build_hooks
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.process import run_process
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies
from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.server import AdmissionServer, ServerOptions
from ktrainer.machinery.certificates.pki import PkiPolicy, create_authority, issue
from ktrainer.machinery.certificates.serving import ServingCertificate
from ktrainer.webhook.metrics import Denials
from ktrainer.webhook.registration import TRAINJOB_DEFAULTER, TRAINJOB_VALIDATOR

if TYPE_CHECKING:
    from ktrainer.webhook.registration import Entry

HOST: Final = "127.0.0.1"
ROUNDS: Final = 5
CALLS: Final = 1_000


def build_review() -> bytes:
    """The question whether a TrainJob with a runtime patch may be created."""
    trainjob = orjson.loads(build_job(2))
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    trainjob["spec"]["runtimePatches"] = [{"manager": "acme.io/placement", "trainingRuntimeSpec": spec}]
    request = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
        "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"},
        "name": "demo",
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": trainjob,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def build_stored_runtime() -> bytes:
    """A runtime as it comes from a cluster, where each version of it is read but once."""
    value = orjson.loads(build_runtime({"torch": {}}, "node"))
    value["metadata"] |= {"uid": "66666666-7777-8888-9999-000000000000", "resourceVersion": "1"}
    return orjson.dumps(value)


def call(port: int, authority: str, path: str, times: int) -> None:
    """Ask over one connection that stays open; raises RuntimeError where the answer is not yes."""
    body, context = build_review(), ssl.create_default_context(cadata=authority)
    with closing(http.client.HTTPSConnection(HOST, port, context=context)) as connection:
        for _ in range(times):
            connection.request("POST", f"{path}?timeout=10s", body, {"Content-Type": "application/json"})
            answer = orjson.loads(connection.getresponse().read())
            if not answer["response"]["allowed"]:
                raise RuntimeError(answer)


async def seconds_of(port: int, authority: str, entry: Entry) -> float:
    """The CPU time of one call, by the best of some rounds; callers are in a process of their own."""
    loop, best = asyncio.get_running_loop(), float("inf")
    with multiprocessing.get_context("spawn").Pool(1) as callers:
        for _ in range(ROUNDS):
            start = time.process_time()
            await loop.run_in_executor(None, callers.apply, call, (port, authority, entry.path, CALLS))
            best = min(best, (time.process_time() - start) / CALLS)
    return best


async def _measure() -> list[Figure]:
    """Serve the hooks, and call them."""
    policy, now = PkiPolicy("ca", (HOST,)), datetime.now(UTC)
    authority = create_authority(policy, now)
    pair, certificate = issue(authority, policy, now), ServingCertificate()
    certificate.install(pair.certificate, pair.key)
    registry, reader = CollectorRegistry(), RuntimeBytes(build_stored_runtime())
    runtimes = build_training(Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys))
    server = AdmissionServer(certificate.context, WebhookMetrics(registry), ServerOptions(HOST, 0, drain_seconds=0))
    for hook in build_hooks(runtimes, reader, Denials(registry), SystemClock()):
        server.register(hook)
    serving = asyncio.create_task(server.run(), name="server")
    port, trusted = await server.wait_listening(), authority.certificate.decode()
    figures = [
        Figure(f"admission, by the {name} of TrainJobs", await seconds_of(port, trusted, entry) * 1e3, "ms", 1)
        for name, entry in (("validator", TRAINJOB_VALIDATOR), ("defaulter", TRAINJOB_DEFAULTER))
    ]
    server.stop()
    await serving
    return figures


def measure() -> list[Figure]:
    """Serve the hooks on the event loop of the manager, and call them."""
    # As the manager logs by default: a line for each admission is for whoever asks for it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    figures: list[Figure] = []

    async def collect() -> None:
        figures.extend(await _measure())

    run_process(collect())
    return figures


def main() -> None:
    """Measure everything."""
    build_parser("admission", __doc__).parse_args()
    run(measure)


if __name__ == "__main__":
    main()
