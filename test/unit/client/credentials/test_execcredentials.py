import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from ktrainer.client.config.config import ExecPlugin
from ktrainer.client.credentials.credentials import Grant
from ktrainer.client.credentials.execcredentials import ExecCredentials
from ktrainer.client.credentials.execplugin import Output
from ktrainer.client.errors import CredentialsFailed
from support.virtualtime import VirtualClock, settle


class Program:
    """Stands in for the program, since another process does not run in virtual time."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.runs = 0
        self.running = 0
        self.seconds = 2.0
        self.lifetime: float | None = 100.0
        self.fails = False
        self.bug: Exception | None = None

    async def run(self, _: ExecPlugin) -> Output:
        self.runs += 1
        self.running += 1
        assert self.running == 1, "two at once"
        number = self.runs
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        if self.bug is not None:
            raise self.bug
        if self.fails:
            raise CredentialsFailed(f"no luck {number}")
        expires_at = None if self.lifetime is None else self.clock.now() + timedelta(seconds=self.lifetime)
        return Output(Grant(f"Bearer {number}"), expires_at)


@pytest.fixture
async def program(virtual_clock: VirtualClock) -> Program:
    return Program(virtual_clock)


@pytest.fixture
def credentials(program: Program, virtual_clock: VirtualClock) -> ExecCredentials:
    return ExecCredentials(ExecPlugin("", "", ""), virtual_clock, program.run)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


async def header_of(credentials: ExecCredentials) -> str:
    return (await credentials.grant()).header


async def test_all_who_wait_should_get_the_result_of_one_run(credentials: ExecCredentials, program: Program) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(header_of(credentials)) for _ in range(20)]
    assert {task.result() for task in tasks} == {"Bearer 1"}
    assert program.runs == 1


async def test_a_grant_should_be_renewed_before_it_expires_without_anybody_waiting(
    credentials: ExecCredentials, program: Program, virtual_clock: VirtualClock
) -> None:
    assert await header_of(credentials) == "Bearer 1"
    await asyncio.sleep(79)
    assert await header_of(credentials) == "Bearer 1"
    assert program.runs == 1
    await asyncio.sleep(2)
    now = virtual_clock.monotonic()
    assert await header_of(credentials) == "Bearer 1"
    assert virtual_clock.monotonic() == now
    await asyncio.sleep(3)
    assert await header_of(credentials) == "Bearer 2"
    assert program.runs == 2


async def test_an_expired_grant_should_not_be_used(credentials: ExecCredentials, program: Program) -> None:
    await credentials.grant()
    await asyncio.sleep(101)
    assert await header_of(credentials) == "Bearer 2"


async def test_a_grant_without_an_end_should_be_used_until_it_is_rejected(
    credentials: ExecCredentials, program: Program
) -> None:
    program.lifetime = None
    first = await credentials.grant()
    await asyncio.sleep(1_000_000)
    assert await credentials.grant() is first
    assert credentials.reject(first)
    assert await header_of(credentials) == "Bearer 2"
    assert credentials.reject(first)
    assert await header_of(credentials) == "Bearer 2"


async def test_rejections_should_not_run_the_plugin_all_the_time(
    credentials: ExecCredentials, program: Program
) -> None:
    for _ in range(10):
        assert not credentials.reject(await credentials.grant())
    assert program.runs == 1


async def test_a_request_that_gives_up_should_not_stop_the_plugin(
    credentials: ExecCredentials, program: Program
) -> None:
    program.seconds = 8
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await credentials.grant()
    await asyncio.sleep(3)
    assert await header_of(credentials) == "Bearer 1"
    assert program.runs == 1


async def test_a_plugin_that_fails_should_be_tried_again_but_not_at_once(
    credentials: ExecCredentials, program: Program, virtual_clock: VirtualClock
) -> None:
    program.fails = True
    for _ in range(5):
        with pytest.raises(CredentialsFailed, match="no luck 1"):
            await credentials.grant()
    assert (program.runs, virtual_clock.monotonic()) == (1, 2)
    program.fails = False
    await asyncio.sleep(10)
    assert await header_of(credentials) == "Bearer 2"


async def test_a_failure_that_nobody_thought_of_should_be_told_to_all_who_wait(
    credentials: ExecCredentials, program: Program, virtual_clock: VirtualClock
) -> None:
    program.bug = KeyError("env")
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(CredentialsFailed, match="KeyError: 'env'"):
                await credentials.grant()
    assert (program.runs, virtual_clock.monotonic()) == (1, 2)
    assert [each["log_level"] for each in logs] == ["error"]
    program.bug = None
    await asyncio.sleep(10)
    assert await header_of(credentials) == "Bearer 2"


async def test_a_failing_renewal_should_leave_the_grant_while_it_is_good(
    credentials: ExecCredentials, program: Program
) -> None:
    await credentials.grant()
    program.fails = True
    await asyncio.sleep(90)
    assert await header_of(credentials) == "Bearer 1"
    await settle()
    await asyncio.sleep(5)
    assert await header_of(credentials) == "Bearer 1"


async def test_a_grant_that_has_expired_should_not_be_used_where_the_plugin_fails(
    credentials: ExecCredentials, program: Program
) -> None:
    await credentials.grant()
    program.fails = True
    await asyncio.sleep(101)
    for _ in range(2):
        with pytest.raises(CredentialsFailed, match="no luck 2"):
            await credentials.grant()
    await asyncio.sleep(10)
    program.fails = False
    assert await header_of(credentials) == "Bearer 3"


async def test_a_grant_that_expires_while_its_renewal_fails_should_not_be_used(
    credentials: ExecCredentials, program: Program
) -> None:
    await credentials.grant()
    program.fails, program.seconds = True, 15
    await asyncio.sleep(99)
    assert await header_of(credentials) == "Bearer 1", "the plugin runs meanwhile"
    await asyncio.sleep(2)
    with pytest.raises(CredentialsFailed, match="no luck 2"):
        await credentials.grant()


async def test_a_grant_that_has_expired_when_it_comes_should_be_tried_nevertheless(
    credentials: ExecCredentials, program: Program
) -> None:
    program.lifetime = -50
    assert await header_of(credentials) == "Bearer 1"
    assert await header_of(credentials) == "Bearer 1"
    await asyncio.sleep(10)
    assert await header_of(credentials) == "Bearer 2"
    assert program.runs == 2


async def test_closing_should_stop_the_plugin(credentials: ExecCredentials, program: Program) -> None:
    async def wait() -> None:
        with pytest.raises(CredentialsFailed, match="stopped"):
            await credentials.grant()

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
        await settle()
        await credentials.close()
    assert program.running == 0
    await credentials.close()
