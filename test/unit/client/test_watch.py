import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.client.errors import LineTooLong
from ktrainer.client.watch import GATHERING_SECONDS, LINE_LIMIT, PLENTY, LineSplitter, lines_of
from support.cases import cases
from support.virtualtime import VirtualClock

LINES = st.lists(
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"?")) | st.just("é€😀".encode()), max_size=8
)


def cut(content: bytes, cuts: list[int]) -> Iterator[bytes]:
    """The content in pieces, some of them empty."""
    places = sorted(each % (len(content) + 1) for each in cuts)
    for begin, end in zip([0, *places], [*places, len(content)], strict=True):
        yield content[begin:end]


def split(chunks: Iterator[bytes], limit: int = LINE_LIMIT) -> tuple[list[bytes], bool]:
    """The lines, and whether the splitter gave up."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    try:
        for chunk in chunks:
            lines.extend(splitter.feed(chunk))
    except LineTooLong:
        return lines, True
    return lines, False


@settings(max_examples=cases(2_000))
@given(lines=LINES, tail=st.binary(max_size=5), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_any_cutting_should_give_the_same_lines(lines: list[bytes], tail: bytes, cuts: list[int]) -> None:
    tail = tail.replace(b"\n", b"")
    content = b"".join(line + b"\n" for line in lines) + tail
    assert split(cut(content, cuts)) == ([line for line in lines if line], False)


@settings(max_examples=cases(2_000))
@given(
    lines=LINES, tail=st.binary(max_size=20), cuts=st.lists(st.integers(0, 200), max_size=12), limit=st.integers(1, 15)
)
def test_a_line_beyond_the_limit_should_end_it_wherever_it_is_cut(
    lines: list[bytes], tail: bytes, cuts: list[int], limit: int
) -> None:
    tail = tail.replace(b"\n", b"")
    content = b"".join(line + b"\n" for line in lines) + tail
    good: list[bytes] = []
    is_too_long = False
    for line in [*lines, tail]:
        is_too_long = len(line) > limit
        if is_too_long:
            break
        good.append(line)
    if not is_too_long:
        good.pop()
    expected = ([line for line in good if line], is_too_long)
    assert split(cut(content, cuts), limit) == expected
    assert split(iter([content]), limit) == expected


def test_a_long_line_should_take_time_in_proportion_to_its_length() -> None:
    splitter = LineSplitter()
    piece = b"x" * 1024
    for _ in range(7 * 1024):
        assert list(splitter.feed(piece)) == []
    [line] = splitter.feed(b"\n")
    assert len(line) == 7 * 1024 * 1024


async def test_the_lines_of_a_stream_should_come_as_they_end() -> None:
    given = [b'{"a"', b": 1}\n{", b'"b": 2}\n', b"half"]
    taken: list[bytes] = []

    class Chunks:
        status = 200
        headers: Mapping[str, str] = {}

        async def chunks(self) -> AsyncIterator[bytes]:
            for each in given:
                taken.append(each)
                yield each

    lines = lines_of(Chunks())
    assert await anext(lines) == b'{"a": 1}'
    assert len(taken) == 2
    assert [line async for line in lines] == [b'{"b": 2}']
    with pytest.raises(LineTooLong, match="3 bytes"):
        await anext(lines_of(Chunks(), limit=3))


async def test_pieces_that_come_one_after_the_other_should_gather_and_single_ones_not_wait(
    virtual_clock: VirtualClock,
) -> None:
    class Pieces:
        status = 200
        headers: Mapping[str, str] = {}

        async def chunks(self) -> AsyncIterator[bytes]:
            for first in (b"single\n", b"close\n", b"plenty\n" * PLENTY, b"last\n"):
                yield first
                if first == b"single\n":
                    await asyncio.sleep(1)
                    yield b"single again\n"

    arrived: dict[bytes, float] = {}
    async for line in lines_of(Pieces()):
        arrived.setdefault(line, virtual_clock.monotonic())
    gathered = pytest.approx(1 + GATHERING_SECONDS)
    assert arrived == {b"single": 0, b"single again": 1, b"close": 1, b"plenty": gathered, b"last": gathered}
