"""Certificates of webhooks while replicas start at once, while others meddle with them, and while they expire."""

import asyncio
import base64
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from ktrainer.machinery.certificates.pki import PkiPolicy, create_authority, issue
from ktrainer.machinery.certificates.validity import certificates_of
from support.copies import eventually
from support.figures import Figures, scaled
from support.hookcalls import call, calling
from support.hookreplicas import HookReplicas, Lifetimes
from support.observer import configmap
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


async def test_T26_damage_should_be_repaired_while_the_former_pair_is_served(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    kubeconfig = cluster.kubeconfig("admin")
    hooks = HookReplicas(kubeconfig, namespace, "certs", Lifetimes())
    slowest: dict[str, float] = {}
    async with hooks.running(admin, tmp_path):
        await eventually(lambda: are_serving(admin, hooks), 60, "all serve what is stored")
        async with calling(kubeconfig, hooks, per_second=20) as calls:
            for number in range(scaled(1, 10)):
                for what, damage in DAMAGES.items():
                    if number % 2:
                        # Else the next damage comes while the last one is still being dealt with.
                        await eventually(lambda: are_serving(admin, hooks), 60, "all serve what is stored")
                    # Where the API server itself has been told to trust others, calls fail whatever we present. What
                    # it trusted before then tells whether we present the right thing.
                    await asyncio.to_thread(calls.follow, admin, hooks, damage is not overwrite_bundle)
                    await asyncio.to_thread(damage, admin, hooks)
                    seconds = await eventually(lambda: is_sound(admin, hooks), 30, f"repaired: {what}")
                    slowest[what] = max(slowest.get(what, 0.0), seconds)
                    await asyncio.to_thread(calls.follow, admin, hooks, True)
            await eventually(lambda: are_serving(admin, hooks), 60, "all serve what is stored")
    for what, seconds in slowest.items():
        figures.at_most(f"repaired: {what}", seconds, 10, "s")
    figures.at_least("handshakes", calls.answered, scaled(300, 3_000))
    assert not calls.failures, calls.failures[:5]
    figures.exactly("handshakes broken", len(calls.failures), 0)


async def test_T25_certificates_should_be_replaced_in_time_and_unnoticed(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    # The short form sees a serving certificate and an authority replaced, too: they live shorter.
    lifetimes = Lifetimes(scaled(50, 150), scaled(40, 60), scaled(25, 30))
    kubeconfig, seconds = cluster.kubeconfig("admin"), scaled(45, 600)
    hooks, trail = HookReplicas(kubeconfig, namespace, "certs", lifetimes), Trail(cluster, namespace)
    history = History(lifetimes.look_ahead)
    async with hooks.running(admin, tmp_path):
        await eventually(lambda: are_serving(admin, hooks), 60, "all serve what is stored")
        # Whoever makes the first objects of a namespace may have been faster than the replicas.
        failed = await asyncio.to_thread(_reviews, admin, "fail_open_count", hooks)
        async with calling(kubeconfig, hooks, per_second=20) as calls, creating(kubeconfig, namespace) as refused:
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                history.note(await asyncio.to_thread(hooks.stored, admin))
                await asyncio.sleep(0.5)
        history.note(await asyncio.to_thread(hooks.stored, admin))
        writes = len(await asyncio.to_thread(accepted, trail, "secrets", hooks))
    failed = await asyncio.to_thread(_reviews, admin, "fail_open_count", hooks) - failed
    asked = await asyncio.to_thread(_reviews, admin, "request_total", hooks)
    figures.at_least("reviews asked for directly, each with a handshake", calls.answered, 15 * seconds)
    figures.at_least("reviews asked for by the API server", asked, 20 * seconds)
    assert not calls.failures, calls.failures[:5]
    figures.exactly("reviews that failed", len(calls.failures), 0)
    figures.exactly("reviews of the API server that failed", failed, 0)
    figures.exactly("objects refused", len(refused), 0)
    figures.at_least("serving certificates", len(calls.presented), scaled(3, 12))
    figures.at_least("authorities", len(history.authorities), scaled(2, 4))
    figures.exactly("replacements that were not due", history.undue, 0)
    figures.at_most("writes of the Secret for each serving certificate", writes / len(history.serving), 1)


class History:
    """What was stored, one after the other; looked at often enough to see everything that was due."""

    def __init__(self, look_ahead: float) -> None:
        self._look_ahead = look_ahead
        self.authorities: list[bytes] = []
        self.serving: list[bytes] = []
        self.undue = 0
        """How often a certificate was replaced of which the end was far."""

    def note(self, stored: dict[str, bytes]) -> None:
        """Take note of what is stored now."""
        if stored["ca.crt"] not in self.authorities:
            self.authorities.append(stored["ca.crt"])
        if stored["tls.crt"] in self.serving:
            return
        if self.serving:
            left = certificates_of(self.serving[-1])[0].not_valid_after_utc - datetime.now(UTC)
            # Certificates know whole seconds only.
            self.undue += left.total_seconds() > self._look_ahead + 1
        self.serving.append(stored["tls.crt"])


@asynccontextmanager
async def creating(kubeconfig: Path, namespace: str, per_second: float = 20) -> AsyncIterator[list[str]]:
    """Let the API server ask all replicas, over and over, in a thread; what it refuses is listed."""
    refused: list[str] = []
    ended = threading.Event()

    def work() -> None:
        with closing(Api(kubeconfig)) as api:
            while not ended.wait(1 / per_second):
                try:
                    api.create(f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All", configmap("one"))
                except Refused as refusal:
                    refused.append(str(refusal))

    task = asyncio.create_task(asyncio.to_thread(work), name="creations")
    try:
        yield refused
    finally:
        ended.set()
        await task


def _reviews(api: Api, name: str, hooks: HookReplicas) -> int:
    """Return how many calls of the replicas' webhooks a counter of the API server tells of."""
    # Metrics are text, which our client of the API server takes for a message.
    text = api.get("/metrics")["message"]
    lines = [each for each in text.splitlines() if each.startswith(f"apiserver_admission_webhook_{name}{{")]
    ours = [each for each in lines if any(f'name="{hook}"' in each for hook in hooks.hook_names)]
    return sum(int(float(each.rpartition(" ")[2])) for each in ours)


def delete(api: Api, hooks: HookReplicas) -> None:
    """Delete the Secret."""
    api.delete(hooks.secret_path)


def empty(api: Api, hooks: HookReplicas) -> None:
    """Leave nothing in the Secret."""
    api.merge(hooks.secret_path, {"data": None})


def put_garbage(api: Api, hooks: HookReplicas) -> None:
    """Put something else into every place of the Secret."""
    _put(api, hooks, dict.fromkeys(hooks.stored(api), b"garbage"))


def mismatch_key(api: Api, hooks: HookReplicas) -> None:
    """Put the key of another certificate into the Secret."""
    _, theirs = _foreign()
    _put(api, hooks, {"tls.key": theirs["tls.key"]})


def put_foreign_authority(api: Api, hooks: HookReplicas) -> None:
    """Put what another authority has issued into the Secret, with its certificate and without its key."""
    _, theirs = _foreign()
    _put(api, hooks, theirs)


def put_foreign_authority_with_key(api: Api, hooks: HookReplicas) -> None:
    """Put all that another authority has into the Secret; that is as good as ours."""
    key, theirs = _foreign()
    _put(api, hooks, {"ca.key": key, **theirs})


def overwrite_bundle(api: Api, hooks: HookReplicas) -> None:
    """Tell the API server to trust somebody else, as an upgrade with Helm does."""
    _, theirs = _foreign()
    while True:
        configuration = api.get(hooks.configuration_path)
        for hook in configuration["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(theirs["ca.crt"]).decode()
        try:
            api.request("PUT", hooks.configuration_path, configuration)
        except Refused as refusal:
            # A replica was faster, in its repair of what came before.
            if refusal.code != 409:
                raise
        else:
            return


DAMAGES: dict[str, Callable[[Api, HookReplicas], None]] = {
    "the Secret is deleted": delete,
    "the Secret is emptied": empty,
    "garbage in the Secret": put_garbage,
    "another key in the Secret": mismatch_key,
    "another authority in the Secret, without its key": put_foreign_authority,
    "other authorities in the webhook configuration": overwrite_bundle,
    "another authority in the Secret, with its key": put_foreign_authority_with_key,
}


def is_sound(api: Api, hooks: HookReplicas) -> bool:
    """Whether what is stored fits together, and the API server trusts it; nobody need present it yet."""
    stored = hooks.stored(api)
    try:
        [authority], [serving] = certificates_of(stored["ca.crt"]), certificates_of(stored["tls.crt"])
        serving.verify_directly_issued_by(authority)
        pairs = [(authority, stored["ca.key"]), (serving, stored["tls.key"])]
        are_pairs = all(load_pem_private_key(key, None).public_key() == each.public_key() for each, key in pairs)
    except (InvalidSignature, KeyError, ValueError):
        return False
    return are_pairs and all(authority in certificates_of(bundle.encode()) for bundle in hooks.bundles(api))


def _foreign() -> tuple[bytes, dict[str, bytes]]:
    """Make the key of an authority that has nothing to do with us, and what else a Secret of it has."""
    policy, now = PkiPolicy("foreign", ("127.0.0.1",)), datetime.now(UTC)
    authority = create_authority(policy, now)
    serving = issue(authority, policy, now)
    return authority.key, {"ca.crt": authority.certificate, "tls.crt": serving.certificate, "tls.key": serving.key}


def _put(api: Api, hooks: HookReplicas, data: dict[str, bytes]) -> None:
    api.merge(hooks.secret_path, {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}})


def _secret(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"}
