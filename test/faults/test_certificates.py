"""Certificates of webhooks while replicas start at once, while others meddle with them, and while they expire."""

import asyncio
import time
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from clusters.api import Api, Object
from clusters.folder import Folder
from ktrainer.machinery.certvalidity import certificates_of
from support.copies import eventually
from support.figures import Figures, scaled
from support.hookcalls import call
from support.hookreplicas import HookReplicas, Lifetimes
from support.trail import Trail, Write

CONFIGURATIONS = "validatingwebhookconfigurations"


def are_serving(api: Api, hooks: HookReplicas) -> bool:
    """Whether every replica presents what is stored, and the API server trusts it."""
    stored = hooks.stored(api)
    if not stored.get("tls.crt"):
        return False
    expected = certificates_of(stored["tls.crt"])[0].public_bytes(Encoding.DER)
    try:
        presented = [call(port, bundle) for port, bundle in zip(hooks.ports, hooks.bundles(api), strict=True)]
    except (OSError, ValueError):
        # They do not listen yet, or there is no authority to trust.
        return False
    return presented == [expected] * len(presented)


def accepted(trail: Trail, resource: str, hooks: HookReplicas) -> list[Write]:
    """Return the writes of the replicas that were stored."""
    return [each for each in trail.writes(resource) if each.agent in hooks.agents and each.is_success]


async def test_T27_replicas_that_start_at_once_should_agree_on_one_authority(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    trail, slowest = Trail(cluster, namespace), 0.0
    stored, trusted, authorities = [], [], []
    for number in range(scaled(2, 50)):
        hooks = HookReplicas(cluster.kubeconfig("admin"), namespace, f"certs-{number}", Lifetimes())
        if number % 2:
            # Those who install us may have made the Secret, so that we need not be allowed to.
            await asyncio.to_thread(admin.create, f"/api/v1/namespaces/{namespace}/secrets", _secret(hooks.secret))
        began = time.monotonic()
        async with hooks.running(admin, tmp_path):
            await eventually(lambda: are_serving(admin, hooks), 60, "all serve what is stored")  # noqa: B023
            slowest = max(slowest, time.monotonic() - began)
            # Whoever came second has had the time to write something else.
            await asyncio.sleep(1)
            assert await asyncio.to_thread(are_serving, admin, hooks)
            bundles = await asyncio.to_thread(hooks.bundles, admin)
        authorities += [len(certificates_of(bundle.encode())) for bundle in bundles]
        stored.append(len(await asyncio.to_thread(accepted, trail, "secrets", hooks)))
        trusted.append(len(await asyncio.to_thread(accepted, trail, CONFIGURATIONS, hooks)))
    figures.at_most("all replicas ready after a common start", slowest, 15, "s")
    figures.exactly("authorities that are trusted, at most", max(authorities), 1)
    figures.exactly("authorities stored, at least", min(stored), 1)
    figures.exactly("authorities stored, at most", max(stored), 1)
    figures.at_most("writes of a webhook configuration", max(trusted), 2)


def _secret(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"}
