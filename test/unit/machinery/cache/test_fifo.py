import asyncio

import pytest

from ktrainer.machinery.cache.delta import Bookmark, Resync, Snapshot
from ktrainer.machinery.cache.distribution import Registration
from ktrainer.machinery.cache.fifo import Fifo, Join, Overflow
from ktrainer.machinery.cache.objects import CachedObject
from support.informers import Recorder
from support.virtualtime import settle

EMPTY = Snapshot[CachedObject]({}, set(), "9", None)


def bookmark(number: int) -> Bookmark:
    return Bookmark(str(number), False)


def marked(mark: int | None) -> Snapshot[CachedObject]:
    return Snapshot({}, set(), "9", mark)


async def mark_of_next(fifo: Fifo[CachedObject]) -> int | None:
    snapshot = await fifo.get()
    assert isinstance(snapshot, Snapshot)
    return snapshot.mark


async def test_entries_should_come_out_in_order() -> None:
    fifo: Fifo[CachedObject] = Fifo()
    fifo.push(bookmark(1))
    fifo.note(Resync())
    fifo.push(bookmark(2))
    assert len(fifo) == 3
    assert [await fifo.get() for _ in range(3)] == [bookmark(1), Resync(), bookmark(2)]


async def test_a_reader_should_wait_for_an_entry() -> None:
    fifo: Fifo[CachedObject] = Fifo()
    for number in (1, 2):
        reader = asyncio.create_task(fifo.get())
        await settle()
        assert not reader.done()
        fifo.push(bookmark(number))
        assert await reader == bookmark(number)


async def test_a_reader_that_leaves_should_take_nothing_along() -> None:
    fifo: Fifo[CachedObject] = Fifo()
    reader = asyncio.create_task(fifo.get())
    await settle()
    fifo.push(bookmark(1))
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await fifo.get() == bookmark(1)


async def test_too_many_changes_should_all_be_dropped() -> None:
    fifo: Fifo[CachedObject] = Fifo(limit=3)
    for number in range(3):
        fifo.push(bookmark(number))
    with pytest.raises(Overflow):
        fifo.push(bookmark(3))
    assert len(fifo) == 0
    fifo.push(bookmark(4))
    assert await fifo.get() == bookmark(4)


async def test_a_snapshot_should_take_the_place_of_all_before_it() -> None:
    fifo: Fifo[CachedObject] = Fifo(limit=1)
    fifo.push(bookmark(1))
    fifo.replace(EMPTY)
    assert len(fifo) == 1
    assert await fifo.get() is EMPTY


async def test_a_handler_that_joins_should_never_be_dropped() -> None:
    fifo: Fifo[CachedObject] = Fifo(limit=2)
    join = Join(Registration[CachedObject](Recorder()))
    fifo.push(bookmark(1))
    fifo.push(bookmark(2))
    fifo.note(join)
    with pytest.raises(Overflow):
        fifo.push(bookmark(3))
    fifo.replace(EMPTY)
    assert [await fifo.get(), await fifo.get()] == [join, EMPTY]


@pytest.mark.parametrize("mark, expected", [(None, 7), (9, 9)])
async def test_the_mark_of_a_snapshot_that_nobody_saw_should_pass_to_the_next(mark: int | None, expected: int) -> None:
    fifo: Fifo[CachedObject] = Fifo()
    fifo.replace(marked(7))
    fifo.push(bookmark(1))
    fifo.replace(marked(mark))
    assert await mark_of_next(fifo) == expected
    fifo.replace(EMPTY)
    assert await mark_of_next(fifo) is None, "it was taken over once, and seen"


async def test_the_mark_of_a_snapshot_that_was_too_much_should_pass_to_the_next() -> None:
    fifo: Fifo[CachedObject] = Fifo(limit=1)
    fifo.replace(marked(7))
    with pytest.raises(Overflow):
        fifo.push(bookmark(1))
    fifo.push(bookmark(2))
    with pytest.raises(Overflow):
        fifo.push(bookmark(3))
    fifo.replace(EMPTY)
    assert await mark_of_next(fifo) == 7


async def test_the_mark_of_a_snapshot_that_was_seen_should_not_pass_to_the_next() -> None:
    fifo: Fifo[CachedObject] = Fifo()
    fifo.replace(marked(7))
    assert await mark_of_next(fifo) == 7
    fifo.replace(EMPTY)
    assert await mark_of_next(fifo) is None
