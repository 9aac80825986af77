from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.machinery.admission.hook import (
    AdmissionRequest,
    AdmissionResponse,
    Hook,
    allowed,
    denied,
    patched,
)
from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.runner import LARGE_BODY_BYTES, MAX_CONCURRENT, MAX_LARGE, AdmissionRunner
from support.cases import cases
from support.jsonvalues import OBJECTS, VALUES
from support.reviews import accept, review
from support.virtualtime import VirtualClock, settle

Answering = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
async def runner(registry: CollectorRegistry) -> AdmissionRunner:
    return AdmissionRunner(WebhookMetrics(registry))


def validating(handle: Answering) -> Hook:
    return Hook("/validate", handle, is_mutating=False)


def raising(error: BaseException) -> Answering:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        raise error

    return handle


async def allow(request: AdmissionRequest) -> AdmissionResponse:
    return allowed()


def now() -> float:
    return asyncio.get_running_loop().time()


def panics(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("controller_runtime_webhook_panics_total")


async def test_what_the_handler_says_should_be_the_answer(runner: AdmissionRunner) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        return denied(f"no {request.name}", warnings=("careful",))

    answer = accept(await runner.answer(validating(handle), review("u-9"), now() + 10), "u-9", is_mutating=False)
    assert answer["status"]["message"] == "no n"
    assert answer["warnings"] == ["careful"]


async def test_a_mutating_hook_should_answer_with_a_patch(runner: AdmissionRunner) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        return patched(request, {"metadata": {"name": "n", "labels": {"a": "b"}}})

    hook = Hook("/mutate", handle, is_mutating=True)
    answer = accept(await runner.answer(hook, review(), now() + 10), "u-1", is_mutating=True)
    assert answer["patch"] == [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]


class OddError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot even be printed")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("password=hunter2"),
        KeyError("hunter2"),
        RecursionError("hunter2"),
        TimeoutError("hunter2"),
        ExceptionGroup("hunter2", [ValueError("hunter2")]),
        OddError(),
        asyncio.CancelledError("hunter2"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_exception_should_be_a_refusal_that_gives_nothing_away(
    runner: AdmissionRunner, registry: CollectorRegistry, error: BaseException
) -> None:
    with capture_logs() as logs:
        body = await runner.answer(validating(raising(error)), review(), now() + 10)
    answer = accept(body, "u-1", is_mutating=False)
    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 500, "InternalError")
    assert type(error).__name__ in answer["status"]["message"]
    assert panics(registry) == 1
    assert [entry["event"] for entry in logs] == ["admission failed"]
    assert "in handle" in logs[0]["stack"]
    assert "hunter2" not in body.decode() + str(logs)


RESPONSES = st.builds(
    AdmissionResponse,
    is_allowed=st.booleans(),
    code=st.integers(),
    reason=st.text(max_size=5),
    message=st.text(max_size=5),
    patch=st.lists(OBJECTS, max_size=2).map(tuple),
    warnings=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)


@settings(max_examples=cases(2_000))
@given(returned=RESPONSES | VALUES, is_mutating=st.booleans())
def test_whatever_a_handler_returns_the_answer_should_be_sound(returned: Any, is_mutating: bool) -> None:
    async def handle(request: AdmissionRequest) -> Any:
        return returned

    with capture_logs():
        accept(ask_once(Hook("/hook", handle, is_mutating), review()), "u-1", is_mutating=is_mutating)


def ask_once(hook: Hook, body: bytes) -> bytes:
    async def ask() -> bytes:
        return await AdmissionRunner(WebhookMetrics(CollectorRegistry())).answer(hook, body, now() + 10)

    return asyncio.run(ask())


async def test_a_patch_of_a_validating_hook_should_never_leave(
    runner: AdmissionRunner, registry: CollectorRegistry
) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        return patched(request, {})

    answer = accept(await runner.answer(validating(handle), review(), now() + 10), "u-1", is_mutating=False)
    assert answer["status"]["code"] == 500
    assert "must not change the object" in answer["status"]["message"]
    assert panics(registry) == 1


async def test_an_answer_that_is_not_json_should_be_a_failure(runner: AdmissionRunner) -> None:
    answer = await runner.answer(validating(raising(ValueError())), review(), now() + 10)
    hook = Hook(
        "/mutate", answering(AdmissionResponse(is_allowed=True, patch=({"value": object()},))), is_mutating=True
    )
    assert accept(await runner.answer(hook, review(), now() + 10), "u-1", is_mutating=True)["status"]["code"] == 500
    assert accept(answer, "u-1", is_mutating=False)["status"]["code"] == 500


def answering(response: AdmissionResponse) -> Answering:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        return response

    return handle


@settings(max_examples=cases(2_000))
@given(body=st.binary(max_size=40) | st.integers(0, 300).map(lambda end: review()[:end]))
def test_any_garbage_should_be_answered_with_a_refusal(body: bytes) -> None:
    with capture_logs():
        answer = accept(ask_once(validating(allow), body), "", is_mutating=False)
    assert (answer["allowed"], answer["status"]["code"]) == (False, 400)


async def test_a_handler_should_be_cancelled_at_its_deadline(
    runner: AdmissionRunner, registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        await asyncio.sleep(60)
        return allowed()

    with capture_logs() as logs:
        answer = accept(await runner.answer(validating(handle), review(), 9.5), "u-1", is_mutating=False)
    assert virtual_clock.monotonic() == 9.5
    assert (answer["status"]["code"], answer["status"]["reason"]) == (500, "ServerTimeout")
    assert [(entry["event"], entry["uid"]) for entry in logs] == [("admission took too long", "u-1")]
    assert panics(registry) == 0


async def test_waiting_for_a_turn_should_count_towards_the_deadline(runner: AdmissionRunner) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        await asyncio.sleep(60)
        return allowed()

    hook = validating(handle)
    async with asyncio.TaskGroup() as group:
        for _ in range(MAX_CONCURRENT):
            group.create_task(runner.answer(hook, review(), now() + 20))
        await settle()
        body = await runner.answer(validating(allow), review("u-2"), now() + 5)
        assert now() == 5
    assert accept(body, "u-2", is_mutating=False)["status"]["reason"] == "ServerTimeout"


async def test_cancellation_should_reach_the_handler_and_free_its_slot(runner: AdmissionRunner) -> None:
    ended = []

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(request.uid)
        return allowed()

    tasks = [asyncio.create_task(runner.answer(validating(handle), review(), 90)) for _ in range(MAX_CONCURRENT + 5)]
    await settle()
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert len(ended) == MAX_CONCURRENT
    assert accept(await runner.answer(validating(allow), review(), 90), "u-1", is_mutating=False)["allowed"]


async def test_handlers_should_run_side_by_side_up_to_the_limit(runner: AdmissionRunner) -> None:
    running, most = 0, 0

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return allowed()

    hook = validating(handle)
    await asyncio.gather(*(runner.answer(hook, review(), 90) for _ in range(2 * MAX_CONCURRENT)))
    assert (most, now()) == (MAX_CONCURRENT, 2)


async def test_large_bodies_should_be_handled_few_at_a_time_and_not_hold_up_small_ones(runner: AdmissionRunner) -> None:
    order = []

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        await asyncio.sleep(1)
        order.append((now(), request.uid))
        return allowed()

    hook = validating(handle)
    large = [review(f"large-{i}", object={"a": "x" * LARGE_BODY_BYTES}) for i in range(2 * MAX_LARGE)]
    await asyncio.gather(*(runner.answer(hook, body, 90) for body in [*large, review("small")]))
    assert sorted(order) == [(1, "large-0"), (1, "large-1"), (1, "small"), (2, "large-2"), (2, "large-3")]


@pytest.mark.parametrize(
    "response, event, level",
    [(allowed(), "admitted", "debug"), (denied("hunter2 is bad", code=422, reason="Invalid"), "refused", "info")],
)
async def test_the_log_should_tell_who_did_what_but_not_what_is_inside(
    runner: AdmissionRunner, response: AdmissionResponse, event: str, level: str
) -> None:
    with capture_logs() as logs:
        body = review(object={"data": {"password": "hunter2"}}, oldObject={"data": "hunter2"}, dryRun=True)
        await runner.answer(validating(answering(response)), body, now() + 10)
    (entry,) = logs
    assert (entry["event"], entry["log_level"]) == (event, level)
    assert entry["webhook"] == "/validate"
    assert (entry["uid"], entry["operation"], entry["user"], entry["dry_run"]) == ("u-1", "CREATE", "me", True)
    assert (entry["kind"], entry["object"]) == ("v1, Kind=ConfigMap", "s/n")
    assert "hunter2" not in str(entry)
