from collections.abc import AsyncIterator

import msgspec
import orjson
import pytest

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, SECRETS
from ktrainer.app.clusterview import CachedData, ClusterView, value_of
from ktrainer.client.config.config import ConnectionConfig
from ktrainer.framework.watch import Concerns, Watch
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.operator import Operator, OperatorSettings

KEY = ObjectKey("kubeflow-system", "certificates")
ONE = Watch(SECRETS, Concerns.UNFINISHED, key=KEY)

pytestmark = pytest.mark.realtime


@pytest.fixture
async def view() -> AsyncIterator[ClusterView]:
    operator = Operator(ConnectionConfig("http://127.0.0.1:1"), OperatorSettings("test"))
    yield ClusterView(operator)
    await operator.connection.close()


async def test_one_object_should_be_watched_alone(view: ClusterView) -> None:
    informer = view.follow(ONE)
    assert informer.view.namespace == KEY.namespace
    assert informer.view.selectors.fields == "metadata.name=certificates"
    assert view.follow(ONE) is informer
    assert view.follow(Watch(SECRETS, labelled=True)) is not informer


async def test_of_a_secret_no_more_than_certificates_should_be_kept(view: ClusterView) -> None:
    shown = view.follow(ONE).view
    secret = {
        "metadata": {"name": KEY.name, "namespace": KEY.namespace, "annotations": {"last-applied": "key"}},
        "data": {"ca.crt": "Y2E=", "ca-prev.crt": "", "ca.key": "a2V5", "tls.crt": "dGxz", "tls.key": "a2V5"},
    }
    cached = msgspec.json.decode(orjson.dumps(secret), type=shown.object_type)
    assert shown.transform is not None
    once = shown.transform(cached)
    assert value_of(once)["data"] == {"ca.crt": "Y2E=", "ca-prev.crt": "", "tls.crt": "dGxz"}
    assert value_of(shown.transform(once)) == value_of(once), "it is harmless when repeated"
    assert "key" not in str(value_of(once))


async def test_a_secret_without_data_should_be_no_error(view: ClusterView) -> None:
    shown = view.follow(ONE).view
    assert shown.transform is not None
    cached = msgspec.json.decode(b'{"metadata": {"name": "certificates"}}', type=shown.object_type)
    assert value_of(shown.transform(cached))["data"] == {}


async def test_equal_data_of_config_maps_should_be_kept_once(view: ClusterView) -> None:
    shown = view.follow(Watch(CONFIG_MAPS, labelled=True)).view
    assert shown.transform is not None
    lines = [orjson.dumps({"metadata": {"name": str(n)}, "data": {"runtime": text}}) for n, text in enumerate("aab")]
    first, second, third = (shown.transform(msgspec.json.decode(line, type=CachedData)) for line in lines)
    assert first.data is second.data
    assert value_of(second)["data"] == {"runtime": "a"}
    assert value_of(third)["data"] == {"runtime": "b"}


@pytest.mark.parametrize("name", ["..", ".", ""])
async def test_an_object_of_an_impossible_name_should_not_be_asked_for(view: ClusterView, name: str) -> None:
    assert await view.fetch(CLUSTER_TRAINING_RUNTIMES, "", name, live=True) is None
