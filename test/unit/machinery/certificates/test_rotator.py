from __future__ import annotations

import asyncio
import base64
from contextlib import AsyncExitStack
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ktrainer.kube.errors import ApiError, Forbidden, InternalError
from ktrainer.kube.timestamp import format_time
from ktrainer.machinery.certificates.cabundle import MUTATING, VALIDATING
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.certificates.rotation import Action, Material, build_material, render
from ktrainer.machinery.certificates.rotator import CHECK_SECONDS, SETTLE_SECONDS
from ktrainer.machinery.certificates.secret import SECRETS
from ktrainer.machinery.certificates.validity import certificates_of
from support.certificates import Issuer
from support.httpspeer import connected
from support.objectstore import ObjectStore, bundle_of, webhook_configuration
from support.replicas import (
    POLICY,
    SECRET,
    Replica,
    current_bundle,
    install_configurations,
    is_trusted,
    secret_writes,
    short_policy,
)
from support.virtualtime import VirtualClock, settle

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore()
    install_configurations(store, bundle=b"\n")
    return store


def served_is_trusted(replica: Replica, store: ObjectStore, clock: VirtualClock) -> bool:
    return is_trusted(replica.serving.certificate, current_bundle(store), clock.now())


def secret_of(store: ObjectStore) -> dict[str, Any]:
    document = store.find(SECRETS.plural, SECRET.name)
    assert document is not None
    return document


def stored_authority(store: ObjectStore) -> bytes:
    return base64.b64decode(secret_of(store)["data"]["ca.crt"])


async def test_the_first_start_should_make_a_certificate_that_is_trusted(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await settle()
        assert (is_trusted_authority(store), replica.serving.installs) == (True, 0)
        await replica.rotator.wait_ready()
        assert virtual_clock.monotonic() == pytest.approx(SETTLE_SECONDS)
        assert served_is_trusted(replica, store, virtual_clock)
        await asyncio.sleep(120)
    assert store.writes == [("create", SECRETS.plural), ("patch", VALIDATING.plural), ("patch", MUTATING.plural)]


def is_trusted_authority(store: ObjectStore) -> bool:
    return certificates_of(stored_authority(store))[0] in certificates_of(current_bundle(store))


async def test_what_is_made_should_be_good_for_a_real_handshake(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    # OpenSSL judges by the real clock: the certificate must live long enough for that.
    policy = PkiPolicy("hook-ca", POLICY.names, timedelta(days=36_500), timedelta(days=36_500))
    async with Replica(store, virtual_clock, policy) as replica:
        await replica.rotator.wait_ready()
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0, ssl=replica.serving.context)
        async with connected(server.sockets[0].getsockname()[1], current_bundle(store)) as peer:
            assert await peer.is_closed()
        server.close()


async def test_a_restart_should_write_nothing_and_not_wait(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    async with Replica(store, virtual_clock) as first:
        await first.rotator.wait_ready()
    await asyncio.sleep(600)
    writes, began_at = len(store.writes), virtual_clock.monotonic()
    async with Replica(store, virtual_clock) as second:
        await second.rotator.wait_ready()
        assert virtual_clock.monotonic() == began_at
        assert second.serving.certificate == first.serving.certificate
        await asyncio.sleep(60)
    assert len(store.writes) == writes


@pytest.mark.parametrize("age, wait", [(1, 5), (3.5, 2.5), (6, 0), (30, 0)])
async def test_a_restart_soon_after_the_first_start_should_wait_only_for_what_is_left(
    store: ObjectStore, virtual_clock: VirtualClock, age: float, wait: float
) -> None:
    async with Replica(store, virtual_clock) as first:
        await first.rotator.wait_ready()
    told = format_time(virtual_clock.now())
    for plural, name in ((VALIDATING.plural, "v"), (MUTATING.plural, "m")):
        configuration = store.find(plural, name)
        assert configuration is not None
        entry = {"manager": "ktrainer", "operation": "Update", "time": told}
        store.put(plural, {**configuration, "metadata": {**configuration["metadata"], "managedFields": [entry]}})
    await asyncio.sleep(age)
    began_at = virtual_clock.monotonic()
    async with Replica(store, virtual_clock) as second:
        await second.rotator.wait_ready()
        assert virtual_clock.monotonic() - began_at == pytest.approx(wait)


async def test_replicas_that_start_at_once_should_agree(virtual_clock: VirtualClock) -> None:
    for seed in range(5):
        random = Random(seed)
        store = ObjectStore(lambda random=random: asyncio.sleep(random.uniform(0, 0.05)))  # type: ignore[misc] # bound
        install_configurations(store)
        began_at = virtual_clock.monotonic()
        async with AsyncExitStack() as stack:
            replicas = [
                await stack.enter_async_context(Replica(store, virtual_clock, seed=seed * 10 + i)) for i in range(3)
            ]
            for replica in replicas:
                await replica.rotator.wait_ready()
            assert virtual_clock.monotonic() - began_at <= 15
            await asyncio.sleep(20)
            assert len({replica.serving.certificate for replica in replicas}) == 1
        assert secret_writes(store) == 1
        assert len(store.writes) == 3, "each configuration was written once"


def deleted(store: ObjectStore) -> None:
    store.remove(SECRETS.plural, SECRET.name)


def with_data(change: Callable[[dict[str, str]], dict[str, Any]]) -> Callable[[ObjectStore], None]:
    def damage(store: ObjectStore) -> None:
        document = secret_of(store)
        store.put(SECRETS.plural, {**document, "data": change(dict(document["data"]))})

    return damage


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(deleted, id="deleted"),
        pytest.param(with_data(lambda data: {}), id="emptied"),
        pytest.param(with_data(lambda data: {**data, "tls.crt": "####"}), id="not base64"),
        pytest.param(with_data(lambda data: dict.fromkeys(data, encoded(b"garbage"))), id="garbage"),
        pytest.param(with_data(lambda data: {**data, "tls.crt": data["tls.crt"][:200]}), id="cut off"),
        pytest.param(with_data(lambda data: {**data, "tls.key": data["ca.key"]}), id="mismatched key"),
        pytest.param(with_data(lambda data: {**data, "ca.crt": encoded(Issuer().authority)}), id="foreign authority"),
        pytest.param(with_data(lambda data: {**data, "ca.key": ""}), id="no authority key"),
    ],
)
async def test_damage_to_the_secret_should_be_repaired_while_the_old_pair_is_served(
    store: ObjectStore, virtual_clock: VirtualClock, damage: Callable[[ObjectStore], None]
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        await asyncio.sleep(100)
        writes = secret_writes(store)
        with capture_logs() as logs:
            damage(store)
            for _ in range(40):
                await asyncio.sleep(0.25)
                assert served_is_trusted(replica, store, virtual_clock)
        assert secret_writes(store) == writes + 1
        (renewal,) = (entry for entry in logs if entry["event"] == "certificates renewed")
        assert renewal["reason"]
        await asyncio.sleep(SETTLE_SECONDS + CHECK_SECONDS)
        assert encoded(replica.serving.certificate) == secret_of(store)["data"]["tls.crt"]
        assert served_is_trusted(replica, store, virtual_clock)
        await asyncio.sleep(60)
        assert secret_writes(store) == writes + 1


@pytest.mark.parametrize("bundle", [None, b"", b"\n", Issuer().authority], ids=["none", "empty", "blank", "foreign"])
async def test_an_overwritten_bundle_should_be_repaired(
    store: ObjectStore, virtual_clock: VirtualClock, bundle: bytes | None
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        install_configurations(store, bundle)
        await asyncio.sleep(10)
        assert served_is_trusted(replica, store, virtual_clock)
        assert bundle_of(store.find(MUTATING.plural, "m")) == stored_authority(store)
        assert secret_writes(store) == 1


async def test_a_former_authority_should_come_back_with_the_new_one(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        former = stored_authority(store)
        with_data(lambda data: {**data, "ca.key": ""})(store)
        await asyncio.sleep(CHECK_SECONDS)
    install_configurations(store)
    async with Replica(store, virtual_clock) as restarted:
        await restarted.rotator.wait_ready()
        bundle = certificates_of(current_bundle(store))
        assert bundle == certificates_of(stored_authority(store) + former)


async def test_an_authority_should_be_revoked_by_the_documented_steps(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        leaked = certificates_of(stored_authority(store))
        deleted(store)
        await asyncio.sleep(CHECK_SECONDS)
        assert set(certificates_of(current_bundle(store))) > set(leaked)
        with_data(lambda data: {key: value for key, value in data.items() if key != "ca-prev.crt"})(store)
        await asyncio.sleep(CHECK_SECONDS)
    async with Replica(store, virtual_clock) as restarted:
        await restarted.rotator.wait_ready()
        install_configurations(store, stored_authority(store))
        await asyncio.sleep(CHECK_SECONDS)
        assert certificates_of(current_bundle(store)) == certificates_of(stored_authority(store))
        with_data(lambda data: {**data, "tls.crt": ""})(store)
        await asyncio.sleep(CHECK_SECONDS + SETTLE_SECONDS)
        (authority,) = certificates_of(current_bundle(store))
        assert [authority] != leaked, "nor does a later renewal bring it back"
        assert secret_of(store)["data"]["ca-prev.crt"] == ""
        assert served_is_trusted(restarted, store, virtual_clock)


async def test_what_is_served_should_stay_trusted_while_another_replica_starts_all_over(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        former = replica.serving.certificate
        fresh = build_material(Action.RENEW_ALL, Material.of({}), POLICY, virtual_clock.now())
        with_data(lambda data: {key: encoded(value) for key, value in fresh.data().items()})(store)
        install_configurations(store)
        replica.rotator.wake()
        await settle()
        assert replica.serving.certificate == former
        assert is_trusted(former, current_bundle(store), virtual_clock.now())
        assert is_trusted(fresh.serving.certificate, current_bundle(store), virtual_clock.now())
        await asyncio.sleep(SETTLE_SECONDS + 1)
        assert replica.serving.certificate == fresh.serving.certificate


SLOW_SECONDS = 120.0
"""How long some callers take to trust a new authority."""


async def test_a_new_authority_should_wait_for_slow_callers(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    async with Replica(store, virtual_clock, settle_seconds=SLOW_SECONDS) as replica:
        await replica.rotator.wait_ready()
        assert virtual_clock.monotonic() == pytest.approx(SETTLE_SECONDS), "nothing was served that could be kept"
        former = replica.serving.certificate
        deleted(store)
        replica.rotator.wake()
        await asyncio.sleep(SLOW_SECONDS - 1)
        assert replica.serving.certificate == former
        assert is_trusted_authority(store)
        await asyncio.sleep(2)
        assert encoded(replica.serving.certificate) == secret_of(store)["data"]["tls.crt"]
        assert is_trusted(former, current_bundle(store), virtual_clock.now())


async def test_a_restart_should_not_wait_for_slow_callers(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    async with Replica(store, virtual_clock, settle_seconds=SLOW_SECONDS) as first:
        await first.rotator.wait_ready()
        deleted(store)
        first.rotator.wake()
        await settle()
    began_at = virtual_clock.monotonic()
    async with Replica(store, virtual_clock, settle_seconds=SLOW_SECONDS) as second:
        await second.rotator.wait_ready()
        assert virtual_clock.monotonic() - began_at <= SETTLE_SECONDS


async def test_what_has_expired_should_not_wait_for_slow_callers(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    policy = short_policy(authority=10_000, serving=100, look_ahead=10)
    async with Replica(store, virtual_clock, policy, settle_seconds=SLOW_SECONDS) as replica:
        await replica.rotator.wait_ready()
        former = replica.serving.certificate
        await asyncio.sleep(80)
        deleted(store)
        await asyncio.sleep(14)
        assert replica.serving.certificate == former
        await asyncio.sleep(CHECK_SECONDS + 2)
        assert replica.serving.certificate != former
        assert served_is_trusted(replica, store, virtual_clock)


async def test_looks_at_the_secret_should_be_counted(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    def counts() -> tuple[float | None, float | None]:
        names = ("certwatcher_read_certificate_total", "certwatcher_read_certificate_errors_total")
        reads, errors = (replica.registry.get_sample_value(name) for name in names)
        return reads, errors

    async def look() -> None:
        replica.rotator.wake()
        await settle()

    async with Replica(store, virtual_clock) as replica:
        await settle()
        assert counts() == (1, 0), "it is no error that there is none yet"
        await replica.rotator.wait_ready()
        reads, _ = counts()
        assert reads is not None
        await look()
        assert counts() == (reads + 1, 0)
        with_data(lambda data: {**data, "tls.crt": encoded(b"garbage")})(store)
        await look()
        assert counts() == (reads + 2, 1)
        deleted(store)
        await look()
        assert counts() == (reads + 3, 2)
        store.trouble = lambda verb, plural: InternalError(500, "InternalError", "down")
        await look()
        assert counts() == (reads + 4, 3)


async def test_waking_should_save_the_wait(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        install_configurations(store)
        replica.rotator.wake()
        await settle()
        assert served_is_trusted(replica, store, virtual_clock)


async def test_a_configuration_that_comes_later_should_be_served_too(virtual_clock: VirtualClock) -> None:
    store = ObjectStore()
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        store.put(VALIDATING.plural, webhook_configuration("v", "one"))
        await asyncio.sleep(10)
        assert served_is_trusted(replica, store, virtual_clock)


async def test_a_serving_certificate_should_be_renewed_in_time_with_one_write(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock, short_policy(authority=10_000, serving=1000, look_ahead=200)) as replica:
        await replica.rotator.wait_ready()
        authority, first = stored_authority(store), replica.serving.certificate
        await asyncio.sleep(790)
        assert replica.serving.certificate == first
        await asyncio.sleep(20)
        assert replica.serving.certificate != first
        assert stored_authority(store) == authority
        assert secret_writes(store) == 2
        assert served_is_trusted(replica, store, virtual_clock)


async def test_a_new_authority_should_be_trusted_for_a_while_before_it_is_presented(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    policy = short_policy(authority=600, serving=599, look_ahead=200)
    trusted_at: dict[bytes, float] = {}
    presented_at: list[tuple[float, bytes]] = []

    def changed() -> None:
        for certificate in certificates_of(current_bundle(store)):
            trusted_at.setdefault(render([certificate]), virtual_clock.monotonic())

    def installed(certificate: bytes) -> None:
        presented_at.append((virtual_clock.monotonic(), stored_authority(store)))

    store.changed = changed
    async with (
        Replica(store, virtual_clock, policy, installed=installed) as one,
        Replica(store, virtual_clock, policy, installed=installed) as other,
    ):
        await asyncio.sleep(410)
        former = one.serving.certificate
        assert (len(trusted_at), other.serving.certificate) == (2, former)
        assert is_trusted(former, current_bundle(store), virtual_clock.now())
        await asyncio.sleep(10)
        assert one.serving.certificate == other.serving.certificate != former
    assert len(presented_at) == 2 * 2
    assert all(at - trusted_at[authority] >= SETTLE_SECONDS for at, authority in presented_at)
    assert len(certificates_of(current_bundle(store))) == 2, "the former authority is still there"


async def test_a_pair_whose_time_has_come_should_be_presented_whatever_became_of_the_secret(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await settle()
        assert not replica.serving.certificate
        store.trouble = lambda verb, plural: InternalError(500, "InternalError", "down")
        await asyncio.sleep(SETTLE_SECONDS + 1)
        assert served_is_trusted(replica, store, virtual_clock)


async def test_what_has_expired_should_be_replaced_without_waiting(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    replica = Replica(store, virtual_clock, short_policy())
    async with replica:
        await replica.rotator.wait_ready()
        store.trouble = lambda verb, plural: InternalError(500, "InternalError", "down")
        await asyncio.sleep(300)
        assert not served_is_trusted(replica, store, virtual_clock)
        store.trouble = lambda verb, plural: None
        replica.rotator.wake()
        await settle()
        assert served_is_trusted(replica, store, virtual_clock)


@pytest.mark.parametrize("skew", [timedelta(minutes=6), timedelta(minutes=-6), timedelta(days=3650)])
async def test_nothing_should_be_renewed_while_the_clocks_disagree(
    store: ObjectStore, virtual_clock: VirtualClock, skew: timedelta
) -> None:
    async with Replica(store, virtual_clock) as first:
        await first.rotator.wait_ready()
        first.server_time.skew = skew
        await asyncio.sleep(60)
        assert secret_writes(store) == 1
        deleted(store)
        with capture_logs() as logs:
            await asyncio.sleep(60)
        assert secret_writes(store) == 1
        assert {entry["event"] for entry in logs} == {
            "certificates not renewed: our clock is not the API server's",
        }
        assert logs[0]["skew_seconds"] == skew.total_seconds()
        assert served_is_trusted(first, store, virtual_clock)
        install_configurations(store)
        await asyncio.sleep(10)
        assert served_is_trusted(first, store, virtual_clock), "what is served needs to stay trusted nevertheless"
        first.server_time.skew = timedelta(minutes=5)
        await asyncio.sleep(10)
        assert secret_writes(store) == 2


async def test_a_replica_whose_clock_is_wrong_should_serve_what_is_there(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as first:
        await first.rotator.wait_ready()
    second = Replica(store, virtual_clock)
    second.server_time.skew = timedelta(days=-3650)
    async with second:
        await second.rotator.wait_ready()
        assert second.serving.certificate == first.serving.certificate
        assert secret_writes(store) == 1


async def test_a_replica_whose_clock_is_wrong_should_not_make_the_first_certificate(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    replica = Replica(store, virtual_clock)
    replica.server_time.skew = timedelta(hours=1)
    async with replica:
        await asyncio.sleep(60)
        assert not replica.rotator.is_ready
        assert store.writes == []


async def test_a_secret_that_cannot_be_written_should_be_served_as_long_as_it_is_good(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    policy = short_policy(authority=10_000, serving=1000, look_ahead=200)
    async with Replica(store, virtual_clock, policy) as first:
        await first.rotator.wait_ready()
    await asyncio.sleep(850)
    store.trouble = lambda verb, plural: Forbidden(403, "Forbidden", "read only") if verb == "update" else None
    with capture_logs() as logs:
        async with Replica(store, virtual_clock, policy) as second:
            await second.rotator.wait_ready()
            assert served_is_trusted(second, store, virtual_clock)
    failures = [entry for entry in logs if entry["log_level"] == "error"]
    assert failures[0]["event"] == "certificates not renewed: the Secret cannot be written"
    assert "expires at" in failures[0]["reason"]


async def test_nothing_should_be_presented_that_could_not_be_made_trusted(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    store.trouble = lambda verb, plural: Forbidden(403, "Forbidden", "no") if verb == "patch" else None
    async with Replica(store, virtual_clock) as replica:
        await asyncio.sleep(60)
        assert (replica.rotator.is_ready, replica.serving.installs) == (False, 0)
        store.trouble = lambda verb, plural: None
        await replica.rotator.wait_ready()
        assert served_is_trusted(replica, store, virtual_clock)


async def test_an_api_server_that_is_down_should_be_asked_again_but_not_pestered(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    def trouble(verb: str, plural: str) -> ApiError | None:
        return InternalError(500, "InternalError", "down")

    store.trouble = trouble
    async with Replica(store, virtual_clock) as replica:
        await asyncio.sleep(600)
        assert 600 / 8 <= store.reads <= 600 / 4 + 12
        store.trouble = lambda verb, plural: None
        recovered_at = virtual_clock.monotonic()
        await replica.rotator.wait_ready()
        assert virtual_clock.monotonic() - recovered_at <= 8 + SETTLE_SECONDS


async def test_a_second_outage_should_be_met_as_fresh_as_the_first(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    async with Replica(store, virtual_clock) as replica:
        await replica.rotator.wait_ready()
        store.trouble = lambda verb, plural: InternalError(500, "InternalError", "down")
        await asyncio.sleep(60)
        store.trouble = lambda verb, plural: None
        await asyncio.sleep(10)
        store.trouble = lambda verb, plural: InternalError(500, "InternalError", "down")
        replica.rotator.wake()
        await settle()
        store.trouble = lambda verb, plural: None
        install_configurations(store)
        await asyncio.sleep(0.1)
        assert served_is_trusted(replica, store, virtual_clock)


async def test_an_answer_that_is_no_secret_should_not_end_the_loop(
    store: ObjectStore, virtual_clock: VirtualClock
) -> None:
    store.put(SECRETS.plural, {"metadata": {"name": SECRET.name}, "data": ["not", "a", "map"]})
    with capture_logs() as logs:
        async with Replica(store, virtual_clock) as replica:
            await asyncio.sleep(10)
            assert not replica.rotator.is_ready
            deleted(store)
            await replica.rotator.wait_ready()
    assert logs[0]["event"] == "certificates could not be checked"


async def test_certificates_that_live_a_minute_should_never_fail_a_caller(virtual_clock: VirtualClock) -> None:
    random = Random(7)
    store = ObjectStore(lambda: asyncio.sleep(random.uniform(0, 0.1)))
    install_configurations(store)
    async with AsyncExitStack() as stack:
        replicas = [
            await stack.enter_async_context(Replica(store, virtual_clock, short_policy(), seed=i)) for i in range(3)
        ]
        for replica in replicas:
            await replica.rotator.wait_ready()
        authorities = set()
        for _ in range(200):
            await asyncio.sleep(3)
            authorities.add(stored_authority(store))
            assert all(served_is_trusted(replica, store, virtual_clock) for replica in replicas)
    expired_after_seconds = 30  # the lifetime of a minute, less the look-ahead of half of it
    assert len(authorities) == pytest.approx(605 / 120, abs=1)
    assert secret_writes(store) <= 605 / expired_after_seconds + 1
    assert len(certificates_of(current_bundle(store))) <= 3


async def test_keys_should_never_be_logged(store: ObjectStore, virtual_clock: VirtualClock) -> None:
    with capture_logs() as logs:
        async with Replica(store, virtual_clock) as replica:
            await replica.rotator.wait_ready()
            with_data(lambda data: {**data, "tls.key": data["ca.key"]})(store)
            await asyncio.sleep(60)
    assert "PRIVATE" not in str(logs)
    key = base64.b64decode(secret_of(store)["data"]["ca.key"]).decode().splitlines()[1]
    assert key not in str(logs)


@pytest.mark.parametrize("refused", ["update", "get"])
async def test_a_certificate_that_cannot_be_renewed_should_be_warned_about(
    store: ObjectStore, virtual_clock: VirtualClock, refused: str
) -> None:
    async with Replica(store, virtual_clock) as first:
        await first.rotator.wait_ready()
        store.trouble = lambda verb, plural: Forbidden(403, "Forbidden", "no") if verb == refused else None
        (certificate,) = certificates_of(first.serving.certificate)
        first.rotator.wake()
        await settle()
        assert first.expiring == []
        await jump(virtual_clock, 336)
        first.rotator.wake()
        await settle()
        assert first.expiring == [certificate.not_valid_after_utc]


async def jump(clock: VirtualClock, days: int) -> None:
    """Let days pass as a suspended machine does: nothing runs meanwhile."""
    loop: Any = asyncio.get_running_loop()
    loop.advance(days * 86_400)
    await asyncio.sleep(0)
