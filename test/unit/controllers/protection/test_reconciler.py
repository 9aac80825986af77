from __future__ import annotations

import pytest

from ktrainer.api.labels import RUNTIME_IN_USE
from ktrainer.api.resources import TRAINING_RUNTIMES
from ktrainer.controllers.protection.reconciler import KEPT_SECONDS
from ktrainer.kube.errors import Forbidden
from ktrainer.kube.identity import ObjectKey
from support.protectedruntimes import PROTECTED, TORCH, protecting
from support.virtualtime import settle


async def test_a_runtime_should_be_protected_while_an_unfinished_trainjob_refers_to_it() -> None:
    async with protecting() as bench:
        assert bench.runtimes.finalizers() == []
        job = bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED
        bench.finish(job)
        await bench.work()
        assert bench.runtimes.finalizers() == []


async def test_the_last_of_many_trainjobs_should_decide_and_the_others_cause_no_turns() -> None:
    async with protecting() as bench:
        jobs = [bench.create_job(f"job{number}") for number in range(100)]
        await bench.work()
        for job in jobs[:50]:
            bench.finish(job)
        for job in jobs[50:99]:
            bench.trainjobs.delete(job)
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED
        assert bench.turns == 1
        bench.trainjobs.delete(jobs[99])
        await bench.work()
        assert bench.runtimes.finalizers() == []
        assert bench.turns == 2


async def test_finalizers_of_others_should_stay() -> None:
    async with protecting(finalizers=("acme.io/a", "acme.io/b")) as bench:
        job = bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() == ["acme.io/a", "acme.io/b", RUNTIME_IN_USE]
        bench.finish(job)
        await bench.work()
        assert bench.runtimes.finalizers() == ["acme.io/a", "acme.io/b"]


async def test_a_finalizer_that_somebody_adds_meanwhile_should_not_be_lost() -> None:
    async with protecting() as bench:

        def interfere() -> None:
            bench.runtimes.before_patch = lambda: None
            bench.runtimes.update(TORCH, metadata={"finalizers": ["acme.io/a"]})

        bench.runtimes.before_patch = interfere
        bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() == ["acme.io/a", RUNTIME_IN_USE]
        assert len(bench.runtimes.patches) == 2


async def test_a_runtime_that_comes_after_its_trainjob_should_be_protected() -> None:
    async with protecting() as bench:
        bench.runtimes.delete(TORCH)
        bench.create_job()
        await bench.work()
        bench.runtimes.create("torch")
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED


async def test_a_protection_that_somebody_removed_should_come_back() -> None:
    async with protecting() as bench:
        bench.create_job()
        await bench.work()
        bench.runtimes.update(TORCH, metadata={"finalizers": []})
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED


async def test_a_deletion_should_wait_for_the_last_trainjob() -> None:
    async with protecting() as bench:
        job = bench.create_job()
        await bench.work()
        bench.runtimes.ask_to_delete(TORCH)
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED
        bench.finish(job)
        await bench.work()
        assert bench.runtimes.finalizers() is None


async def test_a_runtime_that_is_being_deleted_should_not_be_protected_any_more() -> None:
    async with protecting(finalizers=("acme.io/a",)) as bench:
        bench.runtimes.ask_to_delete(TORCH)
        bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() == ["acme.io/a"]
        assert bench.runtimes.patches == []


async def test_a_trainjob_that_the_cache_does_not_show_yet_should_keep_a_runtime_from_going() -> None:
    async with protecting() as bench:
        first = bench.create_job("first")
        await bench.work()
        bench.runtimes.ask_to_delete(TORCH)
        bench.finish(first)
        await bench.work_with_lag(lambda: bench.create_job("second"))
        assert bench.runtimes.finalizers() == PROTECTED
        bench.finish(ObjectKey("team-a", "second"))
        await bench.work()
        assert bench.runtimes.finalizers() is None


async def test_a_trainjob_that_goes_before_any_cache_shows_it_should_not_keep_a_runtime_for_ever() -> None:
    async with protecting() as bench:
        first = bench.create_job("first")
        await bench.work()
        bench.runtimes.ask_to_delete(TORCH)
        bench.finish(first)
        await settle()
        # As before a relist, which tells only of what is there by then.
        streams = list(bench.trainjobs.streams)
        bench.trainjobs.streams.clear()
        second = bench.create_job("second")
        result = await bench.protector.reconcile(TORCH)
        assert (bench.runtimes.finalizers(), result.requeue_after) == (PROTECTED, KEPT_SECONDS)
        bench.trainjobs.delete(second)
        bench.trainjobs.streams.extend(streams)
        result = await bench.protector.reconcile(TORCH)
        assert (bench.runtimes.finalizers(), result.requeue_after) == (None, None)


async def test_a_runtime_that_is_not_being_deleted_should_need_no_look_at_all_trainjobs() -> None:
    async with protecting() as bench:
        job = bench.create_job()
        await bench.work()
        bench.trainjobs.take()
        bench.finish(job)
        await bench.work()
        assert bench.trainjobs.take() == []


async def test_a_namespaced_runtime_should_be_protected_by_the_trainjobs_of_its_namespace() -> None:
    async with protecting(TRAINING_RUNTIMES) as bench:
        key = ObjectKey("team-a", "torch")
        bench.create_job("cluster")
        bench.create_job("elsewhere", "team-b", kind="TrainingRuntime")
        await bench.work()
        assert bench.runtimes.finalizers(key) == []
        bench.create_job("here", kind="TrainingRuntime")
        await bench.work()
        assert bench.runtimes.finalizers(key) == PROTECTED


async def test_with_the_gate_closed_the_finalizer_should_go_wherever_it_is() -> None:
    async with protecting(is_on=False, finalizers=("acme.io/a", RUNTIME_IN_USE)) as bench:
        assert bench.runtimes.finalizers() == ["acme.io/a"]
        bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() == ["acme.io/a"]


async def test_a_manager_that_starts_should_mend_what_happened_meanwhile() -> None:
    async with protecting(finalizers=(RUNTIME_IN_USE,)) as bench:
        assert bench.runtimes.finalizers() == []


async def test_a_runtime_that_goes_at_the_last_moment_should_be_no_failure() -> None:
    async with protecting() as bench:
        bench.runtimes.before_patch = lambda: bench.runtimes.delete(TORCH)
        bench.create_job()
        await bench.work()
        assert bench.runtimes.finalizers() is None


async def test_a_refusal_should_be_raised() -> None:
    async with protecting() as bench:

        def refuse() -> None:
            raise Forbidden(403, "Forbidden", "no")

        bench.runtimes.before_patch = refuse
        bench.create_job()
        with pytest.raises(Forbidden):
            await bench.work()


async def test_a_runtime_that_is_gone_should_be_left_alone() -> None:
    async with protecting() as bench:
        await bench.protector.reconcile(ObjectKey("", "gone"))
        assert bench.runtimes.patches == []


async def test_a_standby_should_hold_no_key_of_a_runtime_that_is_gone() -> None:
    async with protecting(is_leading=False) as bench:
        for number in range(20):
            key = bench.runtimes.create(f"rt{number}")
            job = bench.create_job(f"job{number}", name=key.name)
            await settle()
            bench.runtimes.update(key, metadata={"finalizers": PROTECTED})
            bench.trainjobs.delete(job)
            await settle()
            assert bench.queue.depth() == {0: 1}
            bench.runtimes.delete(key)
            await settle()
            assert not bench.queue.depth()


async def test_a_standby_should_have_what_is_to_be_done_ready() -> None:
    async with protecting(is_leading=False) as bench:
        bench.create_job()
        await settle()
        assert bench.runtimes.finalizers() == []
        await bench.work()
        assert bench.runtimes.finalizers() == PROTECTED


async def test_the_last_look_should_be_at_all_trainjobs_of_the_namespace_page_by_page() -> None:
    async with protecting(TRAINING_RUNTIMES, finalizers=(RUNTIME_IN_USE, "acme.io/a")) as bench:
        key = ObjectKey("team-a", "torch")
        jobs = [bench.create_job(f"job{number}", kind="TrainingRuntime") for number in range(4)]
        await bench.work()
        bench.runtimes.ask_to_delete(key)
        for job in jobs:
            bench.finish(job)
        bench.trainjobs.max_page = 3
        bench.trainjobs.take()
        await bench.work()
        assert bench.runtimes.finalizers(key) == ["acme.io/a"]
        assert [(str(asked), asked.namespace) for asked in bench.trainjobs.asked] == [
            ("list", "team-a"),
            ("page", "team-a"),
        ]
