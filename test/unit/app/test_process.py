import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ktrainer.app.process import GC_THRESHOLDS, TLS_BUFFER_BYTES, TRIM_SECONDS, keep_settled

PROGRAM = """
import asyncio, asyncio.sslproto, gc, sys
if {without_uvloop}:
    import importlib.util
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "uvloop" else find(name, *rest)
from ktrainer.app.process import run_process
from prometheus_client import CollectorRegistry, Counter, generate_latest

async def main():
    registry = CollectorRegistry()
    Counter("it", "it", registry=registry)
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    has_created = b"created" in generate_latest(registry)
    print(loop, gc.get_threshold(), asyncio.sslproto.SSLProtocol.max_size, has_created)

run_process(main())
"""


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def run(*, without_uvloop: bool) -> str:
    program = [sys.executable, "-c", PROGRAM.format(without_uvloop=without_uvloop)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()


def test_a_program_should_run_on_uvloop_where_it_is_installed() -> None:
    assert run(without_uvloop=False).startswith(f"uvloop {GC_THRESHOLDS}")


def test_without_uvloop_connections_should_have_small_buffers() -> None:
    assert run(without_uvloop=True) == f"asyncio {GC_THRESHOLDS} {TLS_BUFFER_BYTES} False"


async def test_what_has_been_loaded_should_be_out_of_the_collectors_sight(thawed: None) -> None:
    task = asyncio.create_task(keep_settled())
    await asyncio.sleep(0)
    assert gc.get_freeze_count() > 0
    assert not task.done()
    task.cancel()


async def test_memory_should_be_given_back_again_and_again(thawed: None) -> None:
    trims: list[float] = []
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    task = asyncio.create_task(keep_settled(lambda: trims.append(loop.time() - began_at)))
    await asyncio.sleep(2.5 * TRIM_SECONDS)
    assert trims == [pytest.approx(TRIM_SECONDS), pytest.approx(2 * TRIM_SECONDS)]
    task.cancel()


async def test_giving_memory_back_should_work_with_this_c_library(thawed: None) -> None:
    task = asyncio.create_task(keep_settled())
    await asyncio.sleep(1.5 * TRIM_SECONDS)
    assert not task.done()
    task.cancel()
