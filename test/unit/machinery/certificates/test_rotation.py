from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.certificates.pki import PkiPolicy, create_authority
from ktrainer.machinery.certificates.rotation import (
    MAX_PREVIOUS,
    Action,
    Key,
    Material,
    build_material,
    decide_rotation,
    is_usable,
    render,
)
from ktrainer.machinery.certificates.validity import certificates_of
from support.cases import cases

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = PkiPolicy("ca", ("hook.system.svc",))
NOTHING = Material.of({})
FRESH = build_material(Action.RENEW_ALL, NOTHING, POLICY, NOW)
OTHER = build_material(Action.RENEW_ALL, NOTHING, POLICY, NOW)


def swapped(*keys: Key) -> Material:
    """Fresh material with some of its parts taken from another."""
    return Material.of({**FRESH.data(), **{key.value: OTHER.data()[key.value] for key in keys}})


def with_part(key: Key, value: bytes) -> Material:
    return Material.of({**FRESH.data(), key.value: value})


def test_material_should_survive_being_stored() -> None:
    assert Material.of(FRESH.data()) == FRESH
    assert set(FRESH.data()) == {"ca.crt", "ca.key", "ca-prev.crt", "tls.crt", "tls.key"}


@pytest.mark.parametrize(
    "material, at, action, reason",
    [
        pytest.param(FRESH, 0 * DAY, Action.KEEP, "", id="fresh"),
        pytest.param(FRESH, 274 * DAY, Action.KEEP, "", id="not yet due"),
        pytest.param(FRESH, 275 * DAY, Action.RENEW_SERVING, "expires at 2027", id="due"),
        pytest.param(
            FRESH, 3560 * DAY, Action.RENEW_ALL, "authority's certificate expires at 2035", id="authority due"
        ),
        pytest.param(NOTHING, 0 * DAY, Action.RENEW_ALL, "authority's certificate is missing", id="nothing"),
        pytest.param(with_part(Key.SERVING, b""), 0 * DAY, Action.RENEW_SERVING, "is missing", id="no certificate"),
        pytest.param(
            with_part(Key.SERVING_KEY, b"-----"), 0 * DAY, Action.RENEW_SERVING, "unreadable", id="garbage key"
        ),
        pytest.param(with_part(Key.AUTHORITY_KEY, b""), 0 * DAY, Action.RENEW_ALL, "unreadable", id="no authority key"),
        pytest.param(
            with_part(Key.AUTHORITY, FRESH.authority.certificate[:99]), 0 * DAY, Action.RENEW_ALL, "", id="cut off"
        ),
        pytest.param(swapped(Key.SERVING_KEY), 0 * DAY, Action.RENEW_SERVING, "does not belong", id="mismatched key"),
        pytest.param(swapped(Key.AUTHORITY), 0 * DAY, Action.RENEW_ALL, "does not belong", id="foreign authority"),
        pytest.param(
            swapped(Key.AUTHORITY, Key.AUTHORITY_KEY),
            0 * DAY,
            Action.RENEW_SERVING,
            "not issued",
            id="whole foreign one",
        ),
    ],
)
def test_the_secret_should_get_what_it_needs(material: Material, at: timedelta, action: Action, reason: str) -> None:
    decision = decide_rotation(material, POLICY, NOW + at)
    assert decision.action is action
    assert reason in decision.reason
    renewed = build_material(action, material, POLICY, NOW + at)
    assert decide_rotation(renewed, POLICY, NOW + at).action is Action.KEEP
    assert (renewed.authority == material.authority) is (action is not Action.RENEW_ALL)


def test_what_is_due_should_be_usable_until_it_expires() -> None:
    assert is_usable(FRESH, POLICY, NOW + 364 * DAY)
    assert not is_usable(FRESH, POLICY, NOW + 365 * DAY)
    assert not is_usable(NOTHING, POLICY, NOW)


def test_former_authorities_should_be_kept_until_they_expire() -> None:
    at = NOW + 3600 * DAY
    known = create_authority(POLICY, NOW + DAY)
    material = replace(FRESH, previous=OTHER.authority.certificate + b"garbage" + OTHER.serving.certificate)
    renewed = build_material(Action.RENEW_ALL, material, POLICY, at, [known.certificate, b"", b"junk"])
    formers = certificates_of(known.certificate + OTHER.authority.certificate + FRESH.authority.certificate)
    assert set(certificates_of(renewed.previous)) == set(formers)
    assert certificates_of(renewed.previous)[0] == formers[0], "the latest comes first"
    again = build_material(Action.RENEW_SERVING, renewed, POLICY, NOW + 3650 * DAY)
    assert certificates_of(again.previous) == [formers[0]]


def test_only_so_many_former_authorities_should_be_kept() -> None:
    material, formers = FRESH, [FRESH.authority.certificate]
    for day in range(1, 8):
        material = build_material(Action.RENEW_ALL, material, POLICY, NOW + day * DAY)
        formers.insert(0, material.authority.certificate)
    assert material.previous == b"".join(formers[1 : MAX_PREVIOUS + 1])


def test_an_authority_should_not_be_its_own_predecessor() -> None:
    renewed = build_material(Action.RENEW_SERVING, FRESH, POLICY, NOW, [FRESH.authority.certificate])
    assert renewed.previous == b""


@settings(max_examples=cases(1_000))
@given(st.permutations([create_authority(POLICY, NOW + timedelta(seconds=i // 2)).certificate for i in range(4)]))
def test_certificates_should_be_written_the_same_in_whatever_order_they_come(pems: list[bytes]) -> None:
    assert render(certificates_of(b"".join(pems))) == render(certificates_of(b"".join(sorted(pems) * 2)))


def test_a_new_serving_certificate_should_not_need_renewal_at_once_even_if_its_authority_soon_does() -> None:
    policy = PkiPolicy("ca", ("a",), timedelta(seconds=150), timedelta(seconds=60), timedelta(seconds=30))
    material = build_material(Action.RENEW_ALL, NOTHING, policy, NOW)
    at = NOW + timedelta(seconds=119)
    renewed = build_material(Action.RENEW_SERVING, material, policy, at)
    assert decide_rotation(renewed, policy, at).action is Action.KEEP
