import asyncio

from structlog.testing import capture_logs

from ktrainer.machinery.cache.distribution import Distributor, Registration
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.record import InformerRecord
from support.informers import Recorder
from support.widgets import widget


class Failing:
    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        raise RuntimeError("add")

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        raise RuntimeError("update")

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        raise ValueError("delete")


def test_a_handler_that_raises_should_neither_stop_nor_silence_others() -> None:
    record, recorder = InformerRecord(), Recorder()
    distributor: Distributor[CachedObject] = Distributor("widgets", record)
    for handler in (Failing(), recorder, Failing()):
        distributor.join(Registration(handler))
    old, new = widget(version=1), widget(version=2)
    with capture_logs() as logs:
        distributor.add(old, is_initial=True)
        distributor.update(old, new)
        distributor.delete(new, is_final_state_unknown=False)
    key = "default/a"
    assert recorder.told == [("initial", key), ("update", key), ("delete", key)]
    assert record.handler_errors == 6
    assert [(entry["event"], entry["handler"]) for entry in logs] == [("event handler failed", "Failing")] * 2


async def test_a_handler_should_be_synced_when_that_is_said() -> None:
    distributor: Distributor[CachedObject] = Distributor("widgets", InformerRecord())
    registration = Registration[CachedObject](Recorder())
    distributor.join(registration)
    assert not registration.has_synced
    waiter = asyncio.create_task(registration.wait_synced())
    distributor.mark_synced()
    await waiter
    assert registration.has_synced
