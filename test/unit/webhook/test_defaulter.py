"""The dates of runtime patches."""

from typing import Any

import orjson
import pytest

from ktrainer.webhook.defaulter import decide_times
from support.hookcases import Webhook
from support.training import trainjob_json

J = dict[str, Any]

NOW, BEFORE, CLAIMED = "2026-01-02T03:04:05Z", "2025-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
FIRST = "/spec/runtimePatches/0/time"
DEEP = orjson.Fragment(b'{"a":' * 500 + b"1" + b"}" * 500)
PATH = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
AS_IT_IS = {"uid": "u-7", "allowed": True}


def patch(manager: str = "a.io/b", time: str | None = None, **spec: Any) -> J:
    return {"manager": manager, "trainingRuntimeSpec": spec, **({"time": time} if time else {})}


@pytest.mark.parametrize(
    "old, new, expected",
    [
        pytest.param([], [patch()], {FIRST: NOW}, id="new"),
        pytest.param([], [patch(time=CLAIMED)], {}, id="new and dated"),
        pytest.param([patch("c.io/d", BEFORE)], [patch()], {FIRST: NOW}, id="new beside another manager's"),
        pytest.param([patch(time=BEFORE)], [patch(time=BEFORE)], {}, id="unchanged"),
        pytest.param([patch(time=BEFORE)], [patch()], {FIRST: BEFORE}, id="unchanged and undated"),
        pytest.param([patch(time=BEFORE)], [patch(time=CLAIMED)], {FIRST: BEFORE}, id="unchanged and dated anew"),
        pytest.param([patch()], [patch()], {}, id="never dated"),
        pytest.param([patch()], [patch(time=CLAIMED)], {FIRST: None}, id="never dated until now"),
        pytest.param([patch(time=BEFORE)], [patch(time=BEFORE, a=1)], {FIRST: NOW}, id="changed"),
        pytest.param([patch(time=BEFORE)], [patch(time=CLAIMED, a=1)], {FIRST: NOW}, id="changed and dated"),
        pytest.param([patch(a=1, time=BEFORE)], [patch(a=True, time=BEFORE)], {FIRST: NOW}, id="changed in type"),
        pytest.param(
            [patch("c.io/d", BEFORE), patch(time=BEFORE)],
            [patch(time=BEFORE), patch("c.io/d", BEFORE, a=1)],
            {"/spec/runtimePatches/1/time": NOW},
            id="in another order",
        ),
    ],
)
def test_dates_should_tell_when_a_patch_was_made_or_altered(old: list[J], new: list[J], expected: J) -> None:
    operations = decide_times(old, new, NOW)
    assert {operation["path"]: operation.get("value") for operation in operations} == expected
    assert all(operation["op"] == ("remove" if operation.get("value") is None else "add") for operation in operations)


@pytest.mark.parametrize("spec", [{}, {"runtimePatches": []}])
async def test_a_trainjob_without_patches_should_stay_as_it_is(spec: J) -> None:
    assert await Webhook().ask(PATH, object=trainjob_json(**spec)) == AS_IT_IS


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param([], id="spec"),
        pytest.param(None, id="no spec"),
        pytest.param({"runtimePatches": {}}, id="patches"),
        pytest.param({"runtimePatches": ["x"]}, id="patch"),
        pytest.param({"runtimePatches": [patch(), {"manager": ["x"]}]}, id="manager"),
    ],
)
async def test_what_is_malformed_should_be_left_to_the_schema(spec: Any) -> None:
    malformed = {**trainjob_json(), "spec": spec}
    assert await Webhook().ask(PATH, object=malformed) == AS_IT_IS
    assert await Webhook().ask(PATH, operation="UPDATE", object=malformed, oldObject=trainjob_json()) == AS_IT_IS


async def test_what_is_too_deep_to_be_compared_should_be_left_to_others() -> None:
    deep = trainjob_json(runtimePatches=[patch(a=DEEP)])
    assert await Webhook().ask(PATH, operation="UPDATE", object=deep, oldObject=deep) == AS_IT_IS


async def test_a_new_patch_should_be_dated_on_create_and_keep_its_date_on_update() -> None:
    webhook, new = Webhook(), trainjob_json(runtimePatches=[patch()])
    response = await webhook.ask(PATH, object=new)
    assert response["patch"] == [{"op": "add", "path": FIRST, "value": NOW}]
    old = trainjob_json(runtimePatches=[patch(time=BEFORE)])
    response = await webhook.ask(PATH, operation="UPDATE", object=new, oldObject=old)
    assert response["patch"] == [{"op": "add", "path": FIRST, "value": BEFORE}]
    assert webhook.cluster.reads == []
