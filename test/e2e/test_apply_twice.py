"""That the API server keeps what we build: applied again it changes nothing, and what came before leaves no trace.

P9 of the properties. The keys of Secrets are left out: they are created once, and never applied.
"""

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clusters.api import Api, Object, Refused
from ktrainer.api.gates import Gate
from ktrainer.api.resources import (
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBSETS,
    SECRETS,
    TRAINJOBS,
    VOLCANO_POD_GROUPS,
)
from support.apiobjects import trainjob
from support.fitting import FRAMEWORKS, GANGS, changes, runtimes, trainjobs
from support.rendering import rendered

pytestmark = pytest.mark.usefixtures("crds")

MANAGER = "trainer"
NAME = "demo"
KINDS = (CONFIG_MAPS, SECRETS, JOBSETS, COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, HORIZONTAL_POD_AUTOSCALERS)
PATHS = {(resource.api_version, resource.kind): resource for resource in KINDS}
# Where the plugin TrainJobStatus finds the certificate.
SERVING: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "kubeflow-trainer-webhook-cert", "namespace": "kubeflow-system"},
    "data": {"ca.crt": base64.b64encode(b"certificate").decode()},
}


@pytest.fixture
def owner(admin: Api, namespace: str) -> Object:
    """A TrainJob that owns what is made: what has no owner is removed by the garbage collector."""
    made: Object = admin.create(TRAINJOBS.path(namespace), trainjob(NAME))["metadata"]
    return made


def built(runtime: Object, job: Object, owner: Object) -> list[Object]:
    job = {**job, "metadata": {key: owner[key] for key in ("name", "namespace", "uid")}}
    rendering = rendered(runtime, SERVING, job, gates={Gate.TRAINJOB_STATUS})
    assert not rendering.has_errors, rendering.reports
    return [each for each in rendering.objects if each["kind"] != "Secret"]


def path_of(item: Object) -> str:
    metadata = item["metadata"]
    return PATHS[item["apiVersion"], item["kind"]].path(metadata["namespace"], metadata["name"])


def apply(admin: Api, item: Object) -> Object:
    return admin.apply(path_of(item), item, MANAGER)


def seen(item: Object) -> Object:
    """What does not differ between objects that were made alike, and which fields we own; webhooks add empty ones."""
    metadata = {key: item["metadata"].get(key) for key in ("name", "labels", "annotations", "ownerReferences")}
    owned = [
        each["fieldsV1"]
        for each in item["metadata"]["managedFields"]
        if (each["manager"], each["operation"]) == (MANAGER, "Apply")
    ]
    made: Object = whole({**item, "metadata": metadata, "owned": None, "status": None})
    return {**made, "owned": owned}


def whole(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {key: whole(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item not in (None, {}, [])}
    return [whole(item) for item in value] if isinstance(value, list) else value


@given(st.data())
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@pytest.mark.timeout(600)
def test_what_is_built_should_be_what_the_api_server_keeps(admin: Api, owner: Object, data: Any) -> None:
    framework, gang = data.draw(st.sampled_from(list(FRAMEWORKS))), data.draw(st.sampled_from(list(GANGS)))
    event(framework)
    event(gang)
    runtime, job = data.draw(runtimes(framework, gang)), data.draw(trainjobs(framework))
    changed = {**job, "spec": {**job["spec"], **data.draw(changes()), "suspend": True}}
    before, after = built(runtime, job, owner), built(runtime, changed, owner)
    try:
        for item in before:
            assert_unchanged(apply(admin, item), apply(admin, item))
        over = [seen(apply(admin, item)) for item in after]
        for item in after:
            admin.delete(path_of(item))
        assert over == [seen(apply(admin, item)) for item in after]
    finally:
        for item in after:
            delete(admin, item)


def assert_unchanged(first: Object, second: Object) -> None:
    if first["kind"] == "HorizontalPodAutoscaler":
        # The autoscaler writes its status at any time, and that counts as a version.
        assert seen(first) == seen(second)
    else:
        assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def delete(admin: Api, item: Object) -> None:
    try:
        admin.delete(path_of(item))
    except Refused as refusal:
        if refusal.code != 404:
            raise
