from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from ktrainer.kube.errors import ApiError, Conflict, Forbidden, InternalError
from ktrainer.kube.patches import apply
from ktrainer.machinery.certificates.cabundle import (
    MAX_AUTHORITIES,
    MUTATING,
    TRIES,
    VALIDATING,
    BundleInjector,
    Configuration,
    Injection,
    build_patch,
    merge_bundle,
)
from ktrainer.machinery.certificates.pki import PkiPolicy, create_authority, issue
from ktrainer.machinery.certificates.validity import certificates_of
from support.certificates import Issuer
from support.objectstore import ObjectStore, bundle_of, webhook_configuration

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = PkiPolicy("ca", ("a",))
DAYS = [create_authority(POLICY, NOW + timedelta(days=day)).certificate for day in range(12)]
"""Authorities of ours, the oldest first."""
FOREIGN = Issuer().authority
SERVING = issue(create_authority(POLICY, NOW), POLICY, NOW).certificate


def merged(current: bytes, *own: bytes, at: timedelta = timedelta(0)) -> bytes | None:
    return merge_bundle(current, certificates_of(b"".join(own)), "ca", NOW + at)


@pytest.mark.parametrize(
    "current, own, expected",
    [
        pytest.param(b"", [DAYS[0]], DAYS[0], id="nothing there"),
        pytest.param(b"\n", [DAYS[0]], DAYS[0], id="a placeholder"),
        pytest.param(DAYS[0], [DAYS[0]], None, id="already there"),
        pytest.param(DAYS[1] + DAYS[0], [DAYS[0]], None, id="there with one of ours that we do not know"),
        pytest.param(DAYS[0] + DAYS[1], [DAYS[1], DAYS[0]], None, id="there in another order"),
        pytest.param(b"# text\n" + DAYS[0], [DAYS[0]], None, id="there with a comment"),
        pytest.param(DAYS[0], [DAYS[1]], DAYS[1] + DAYS[0], id="added to what is ours"),
        pytest.param(FOREIGN, [DAYS[0]], DAYS[0], id="foreign"),
        pytest.param(FOREIGN + DAYS[0], [DAYS[0]], DAYS[0], id="foreign besides ours"),
        pytest.param(SERVING + DAYS[0], [DAYS[0]], DAYS[0], id="not an authority"),
    ],
)
def test_a_bundle_should_hold_ours_and_nothing_foreign(
    current: bytes, own: list[bytes], expected: bytes | None
) -> None:
    assert merged(current, *own) == expected


def test_a_foreign_authority_that_is_in_the_secret_should_be_treated_as_ours() -> None:
    result = merged(DAYS[0], DAYS[1], FOREIGN)
    assert result is not None
    assert set(certificates_of(result)) == set(certificates_of(FOREIGN + DAYS[0] + DAYS[1]))
    assert merged(result, DAYS[1], FOREIGN) is None


def test_an_expired_authority_should_go_with_the_next_change_but_not_be_a_reason_for_one() -> None:
    at = timedelta(days=3650, hours=1)
    assert merged(DAYS[2] + DAYS[0], DAYS[2], at=at) is None
    assert merged(DAYS[2] + DAYS[0], DAYS[3], at=at) == DAYS[3] + DAYS[2]


def test_a_bundle_should_not_grow_without_limit() -> None:
    result = merged(b"".join(DAYS[:-1]), DAYS[-1])
    assert result == b"".join(reversed(DAYS[-1 - MAX_AUTHORITIES :]))


def test_a_patch_should_touch_only_the_webhooks_that_need_it() -> None:
    own = certificates_of(DAYS[0])
    configuration = webhook_configuration("c", "one", "two")
    configuration["webhooks"][0]["clientConfig"] = {"url": "https://x", "caBundle": "not base64!"}
    operations = build_patch(configuration, own, "ca", NOW)
    after = apply(operations, configuration)
    assert [bundle_of(after, index) for index in (0, 1)] == [DAYS[0], DAYS[0]]
    assert after["webhooks"][0]["clientConfig"]["url"] == "https://x"
    assert build_patch(after, own, "ca", NOW) == []
    after["webhooks"][1]["clientConfig"]["caBundle"] = ""
    assert {operation["path"] for operation in build_patch(after, own, "ca", NOW)} == {
        "/webhooks/1/name",
        "/webhooks/1/clientConfig",
        "/webhooks/1/clientConfig/caBundle",
    }


@pytest.mark.parametrize(
    "configuration",
    [
        {"metadata": {"name": "c"}},
        {"metadata": {"name": "c"}, "webhooks": None},
        {
            **webhook_configuration("c", "one"),
            "metadata": {"name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        },
    ],
    ids=["no webhooks", "null", "being deleted"],
)
def test_nothing_should_be_done_where_there_is_nothing_to_do(configuration: dict[str, Any]) -> None:
    assert build_patch(configuration, certificates_of(DAYS[0]), "ca", NOW) == []


CONFIGURATIONS = [Configuration(VALIDATING, "v"), Configuration(MUTATING, "m")]


def store_of(**delays: Any) -> ObjectStore:
    store = ObjectStore(**delays)
    store.put(VALIDATING.plural, webhook_configuration("v", "one", "two"))
    store.put(MUTATING.plural, webhook_configuration("m", "three"))
    return store


async def test_all_configurations_should_be_given_the_authority_once() -> None:
    store = store_of()
    injector = BundleInjector(store, CONFIGURATIONS, "ca")
    assert await injector.inject([DAYS[0], b"", b"junk"], NOW) == Injection(is_complete=True, has_written=True)
    assert bundle_of(store.find(VALIDATING.plural, "v"), 1) == DAYS[0]
    assert bundle_of(store.find(MUTATING.plural, "m")) == DAYS[0]
    assert await injector.inject([DAYS[0]], NOW) == Injection(is_complete=True, has_written=False)
    assert store.writes == [("patch", VALIDATING.plural), ("patch", MUTATING.plural)]


async def test_a_configuration_that_does_not_exist_should_be_passed_over() -> None:
    store = store_of()
    store.remove(VALIDATING.plural, "v")
    injector = BundleInjector(store, CONFIGURATIONS, "ca")
    assert await injector.inject([DAYS[0]], NOW) == Injection(is_complete=True, has_written=True)
    store.put(VALIDATING.plural, webhook_configuration("v", "one"))
    assert await injector.inject([DAYS[0]], NOW) == Injection(is_complete=True, has_written=True)
    assert bundle_of(store.find(VALIDATING.plural, "v")) == DAYS[0]


async def test_trouble_with_one_configuration_should_not_stop_the_others() -> None:
    def trouble(verb: str, plural: str) -> ApiError | None:
        return Forbidden(403, "Forbidden", "no") if (verb, plural) == ("patch", VALIDATING.plural) else None

    store = store_of()
    store.trouble = trouble
    with capture_logs() as logs:
        injection = await BundleInjector(store, CONFIGURATIONS, "ca").inject([DAYS[0]], NOW)
    assert injection == Injection(is_complete=False, has_written=True)
    assert bundle_of(store.find(MUTATING.plural, "m")) == DAYS[0]
    assert [(entry["event"], entry["configuration"]) for entry in logs if entry["log_level"] == "warning"] == [
        ("authority not put into webhook configuration", "v")
    ]


async def test_a_change_that_comes_between_should_not_be_overwritten() -> None:
    store = store_of()
    interruptions = [webhook_configuration("v", "zero", "one", bundle=DAYS[1])]

    def interrupt(verb: str, plural: str) -> ApiError | None:
        if (verb, plural) == ("patch", VALIDATING.plural) and interruptions:
            store.put(VALIDATING.plural, interruptions.pop())
        return None

    store.trouble = interrupt
    injection = await BundleInjector(store, CONFIGURATIONS, "ca").inject([DAYS[0]], NOW)
    assert injection == Injection(is_complete=True, has_written=True)
    for index in (0, 1):
        assert bundle_of(store.find(VALIDATING.plural, "v"), index) == DAYS[1] + DAYS[0]


@pytest.mark.parametrize("error, tries", [(Conflict, TRIES), (InternalError, 1)])
async def test_losing_should_not_be_tried_for_ever(error: type[ApiError], tries: int) -> None:
    calls = []

    def trouble(verb: str, plural: str) -> ApiError | None:
        if verb != "patch":
            return None
        calls.append(plural)
        return error(409, "", "no")

    store = store_of()
    store.trouble = trouble
    injection = await BundleInjector(store, CONFIGURATIONS[:1], "ca").inject([DAYS[0]], NOW)
    assert injection == Injection(is_complete=False, has_written=False)
    assert len(calls) == tries
