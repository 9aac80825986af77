from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from ktrainer.kube.errors import AlreadyExists, Conflict
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.certificates.rotation import Action, Material, build_material
from ktrainer.machinery.certificates.secret import SECRETS, CertificateSecret
from support.objectstore import ObjectStore

KEY = ObjectKey("system", "certs")
NOTHING = Material.of({})
MATERIAL = build_material(Action.RENEW_ALL, NOTHING, PkiPolicy("ca", ("a",)), datetime(2026, 1, 1, tzinfo=UTC))


async def test_a_secret_should_be_created_where_there_is_none() -> None:
    store = ObjectStore()
    secret = CertificateSecret(store, KEY)
    stored = await secret.read()
    assert (stored.document, stored.material) == (None, NOTHING)
    await secret.write(stored, MATERIAL)
    assert (await secret.read()).material == MATERIAL
    made = store.find(SECRETS.plural, "certs")
    assert made is not None
    assert (made["kind"], made["apiVersion"], made["type"]) == ("Secret", "v1", "Opaque")
    assert made["metadata"]["namespace"] == "system"


async def test_what_else_is_in_a_secret_should_stay() -> None:
    store = ObjectStore()
    metadata = {"name": "certs", "labels": {"a": "b"}}
    store.put(SECRETS.plural, {"metadata": metadata, "type": "x", "data": {"other": "eA=="}})
    secret = CertificateSecret(store, KEY)
    await secret.write(await secret.read(), MATERIAL)
    made = store.find(SECRETS.plural, "certs")
    assert made is not None
    assert (made["type"], made["metadata"]["labels"], made["data"]["other"]) == ("x", {"a": "b"}, "eA==")
    assert (await secret.read()).material == MATERIAL


@pytest.mark.parametrize("data", [None, {}, {"ca.crt": ""}], ids=["null", "empty", "empty value"])
async def test_an_empty_secret_should_be_read_as_nothing(data: object) -> None:
    store = ObjectStore()
    store.put(SECRETS.plural, {"metadata": {"name": "certs"}, "data": data})
    assert (await CertificateSecret(store, KEY).read()).material == NOTHING


async def test_a_value_that_is_not_base64_should_be_told_and_left_out() -> None:
    store = ObjectStore()
    data = {"ca.crt": "###", "ca.key": 5, "tls.crt": base64.b64encode(b"x").decode()}
    store.put(SECRETS.plural, {"metadata": {"name": "certs"}, "data": data})
    with capture_logs() as logs:
        stored = await CertificateSecret(store, KEY).read()
    assert (stored.material.serving.certificate, stored.material.authority.certificate) == (b"x", b"")
    assert [entry["key"] for entry in logs] == ["ca.crt", "ca.key"]


async def test_a_writer_who_comes_second_should_be_told() -> None:
    store = ObjectStore()
    first, second = CertificateSecret(store, KEY), CertificateSecret(store, KEY)
    nothing = await second.read()
    await first.write(await first.read(), MATERIAL)
    with pytest.raises(AlreadyExists):
        await second.write(nothing, MATERIAL)
    stale = await second.read()
    await first.write(await first.read(), MATERIAL)
    with pytest.raises(Conflict):
        await second.write(stale, MATERIAL)
