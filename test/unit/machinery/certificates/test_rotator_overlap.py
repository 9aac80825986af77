"""Whatever replicas, clocks and meddlers do, every API server trusts every certificate that it is shown."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ktrainer.kube.errors import ServiceUnavailable
from ktrainer.machinery.certificates.pki import PkiPolicy, create_authority
from ktrainer.machinery.certificates.rotation import Action, Material, decide_rotation
from ktrainer.machinery.certificates.rotator import SETTLE_SECONDS
from ktrainer.machinery.certificates.secret import SECRETS
from support.cases import cases
from support.objectstore import ObjectStore
from support.replicas import (
    SECRET,
    Replica,
    current_bundle,
    install_configurations,
    is_trusted,
    short_policy,
)
from support.virtualtime import VirtualClock, VirtualTimeLoop

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject


@dataclass(frozen=True)
class Event:
    """Something that happens to the replicas after a while."""

    after_seconds: float
    kind: str
    replica: int = 0


@dataclass(frozen=True)
class Story:
    """One run."""

    policy: PkiPolicy
    replicas: int
    latency_seconds: float
    seed: int
    events: list[Event] = field(default_factory=list)


KINDS = ["pause", "restart", "outage", "deleted", "emptied", "garbage", "mismatched", "foreign"]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    look_ahead = draw(st.integers(30, 60))
    serving = look_ahead + draw(st.integers(10, 60))
    authority = serving + draw(st.integers(0, 100))
    events = st.builds(Event, st.floats(0, 30), st.sampled_from(KINDS), st.integers(0, 2))
    return Story(
        policy=short_policy(authority, serving, look_ahead),
        replicas=draw(st.integers(1, 3)),
        latency_seconds=draw(st.sampled_from([0.0, 0.01, 0.5])),
        seed=draw(st.integers(0, 99)),
        events=draw(st.lists(events, max_size=6)),
    )


@settings(max_examples=cases(1_000))
@given(stories())
def test_every_certificate_that_is_served_should_be_trusted_before_during_and_after_a_rotation(story: Story) -> None:
    with capture_logs(), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.get_loop().set_debug(False)
        runner.run(Play(story, VirtualClock(runner.get_loop())).run())


class Play:
    """Lets a story happen, and watches."""

    def __init__(self, story: Story, clock: VirtualClock) -> None:
        self._story = story
        self._clock = clock
        random = Random(story.seed)
        self._store = ObjectStore(lambda: asyncio.sleep(random.uniform(0, story.latency_seconds)))
        install_configurations(self._store)
        self._store.changed = self._check_change
        self._bundles = [(0.0, b"")]
        """All that API servers ever trusted, and since when."""
        self._material = Material.of({})
        self._is_meddling = False
        self._violations: list[str] = []
        """What went wrong inside a replica, which would survive an exception."""
        self._replicas = [self._replica(i) for i in range(story.replicas)]

    def _replica(self, index: int) -> Replica:
        return Replica(
            self._store, self._clock, self._story.policy, seed=self._story.seed + index, installed=self._check_install
        )

    async def run(self) -> None:
        for replica in self._replicas:
            replica.start()
        try:
            for event in self._story.events:
                await self._pass(event.after_seconds)
                await self._happen(event)
            await self._pass(60)
            assert all(replica.rotator.is_ready for replica in self._replicas)
        finally:
            for replica in self._replicas:
                await replica.stop()

    async def _pass(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while self._clock.monotonic() < until:
            await asyncio.sleep(5)
            self._check_served(current_bundle(self._store))
            assert self._violations == []

    async def _happen(self, event: Event) -> None:
        index = event.replica % self._story.replicas
        match event.kind:
            case "restart":
                await self._replicas[index].stop()
                self._replicas[index] = self._replica(index)
                self._replicas[index].start()
            case "outage":
                self._store.trouble = lambda verb, plural: ServiceUnavailable(503, "", "down")
                await self._pass(5)
                self._store.trouble = lambda verb, plural: None
            case "pause":
                pass
            case _:
                self._is_meddling = True
                self._damage(event.kind)
                self._is_meddling = False

    def _damage(self, kind: str) -> None:
        document = self._store.find(SECRETS.plural, SECRET.name)
        if document is None or kind == "deleted":
            self._store.remove(SECRETS.plural, SECRET.name)
            return
        data = dict(document["data"])
        if kind == "foreign" and data:
            foreign = create_authority(self._story.policy, self._clock.now())
            data |= {"ca.crt": _encoded(foreign.certificate), "ca.key": _encoded(foreign.key)}
        elif kind == "mismatched" and "ca.key" in data:
            data["tls.key"] = data["ca.key"]
        else:
            data = {} if kind == "emptied" else {"ca.crt": _encoded(b"garbage"), "tls.crt": "???"}
        self._store.put(SECRETS.plural, {**document, "data": data})

    def _check_change(self) -> None:
        """Called whenever anything was stored."""
        bundle = current_bundle(self._store)
        if bundle != self._bundles[-1][1]:
            self._bundles.append((self._clock.monotonic(), bundle))
            self._check_served(bundle)
        material = _material_of(self._store.find(SECRETS.plural, SECRET.name))
        if material != self._material and not self._is_meddling:
            self._check_write(self._material, material)
        self._material = material

    def _check_write(self, before: Material, after: Material) -> None:
        # A replica decides before its request is under way, and certificates end at whole seconds.
        now = self._clock.now()
        decided_at = (now - timedelta(seconds=self._story.latency_seconds), now)
        actions = {decide_rotation(before, self._story.policy, each).action for each in decided_at}
        made = Action.RENEW_SERVING if before.authority == after.authority else Action.RENEW_ALL
        if made not in actions:
            self._violations.append(f"a write to {made.value}, where the need was to {sorted(actions)}")

    def _check_install(self, certificate: bytes) -> None:
        """Called whenever a replica presents another certificate, to API servers that may lag behind."""
        # Times are floats: adding and subtracting the same seconds need not lead back to the same instant.
        since = self._clock.monotonic() - SETTLE_SECONDS + 1e-6
        ends = [begins for begins, _ in self._bundles[1:]] + [float("inf")]
        for (_, bundle), end in zip(self._bundles, ends, strict=True):
            if end > since and not is_trusted(certificate, bundle, self._clock.now()):
                self._violations.append("a certificate was presented too early")

    def _check_served(self, bundle: bytes) -> None:
        for replica in self._replicas:
            if replica.serving.installs and not is_trusted(replica.serving.certificate, bundle, self._clock.now()):
                self._violations.append("a certificate is not trusted")


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _material_of(document: JsonObject | None) -> Material:
    data = {}
    for key, value in ((document or {}).get("data") or {}).items():
        try:
            data[key] = base64.b64decode(value, validate=True)
        except ValueError:
            continue
    return Material.of(data)
