import asyncio

import pytest
from structlog.testing import capture_logs

from ktrainer.machinery.serving.health import Finding, HealthChecks, Unhealthy, render
from support.virtualtime import VirtualClock


def fail() -> None:
    raise Unhealthy("the disk\nis full")


def crash() -> None:
    raise KeyError("secret")


def succeed() -> None:
    pass


async def succeed_later() -> None:
    await asyncio.sleep(1)


async def fail_later() -> None:
    await asyncio.sleep(1)
    raise Unhealthy("late")


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def checks() -> HealthChecks:
    return HealthChecks("healthz")


async def test_no_checks_should_be_healthy(checks: HealthChecks) -> None:
    assert await checks.run() == []


async def test_findings_should_come_by_name(checks: HealthChecks) -> None:
    checks.add("b", succeed_later)
    checks.add("c", fail)
    checks.add("a", succeed)
    checks.add("d", fail_later)
    assert await checks.run() == [Finding("a"), Finding("b"), Finding("c", "the disk is full"), Finding("d", "late")]


async def test_checks_should_run_at_a_time_and_not_for_ever(checks: HealthChecks, virtual_clock: VirtualClock) -> None:
    checks.add("one", hang)
    checks.add("two", hang)
    assert await checks.run() == [Finding("one", "took too long"), Finding("two", "took too long")]
    assert virtual_clock.monotonic() == 10


async def test_a_check_that_crashes_should_fail_and_keep_its_reason_to_the_log(checks: HealthChecks) -> None:
    checks.add("a", crash)
    with capture_logs() as logs:
        assert await checks.run() == [Finding("a", "reason withheld")]
    assert "secret" in logs[0]["error"]


async def test_a_timeout_of_the_checks_own_should_not_be_taken_for_ours(checks: HealthChecks) -> None:
    async def time_out() -> None:
        raise TimeoutError

    checks.add("a", time_out)
    assert await checks.run() == [Finding("a", "reason withheld")]


async def test_excluded_checks_should_not_run(checks: HealthChecks) -> None:
    checks.add("a", crash)
    assert await checks.run(["a"]) == [Finding("a", is_excluded=True)]


async def test_changes_of_health_should_be_told_once(checks: HealthChecks) -> None:
    reasons = ["", "x", "y", "", ""]

    def check() -> None:
        reason = reasons.pop(0)
        if reason:
            raise Unhealthy(reason)

    checks.add("a", check)
    with capture_logs() as logs:
        for _ in range(5):
            await checks.run()
    assert [entry["event"] for entry in logs] == ["health checks fail", "health checks pass"]


@pytest.mark.parametrize("name", ["", "a/b", "A", "a b", "-a", "a?"])
def test_names_that_do_not_fit_into_a_path_should_be_refused(checks: HealthChecks, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        checks.add(name, succeed)


def test_names_should_be_unique(checks: HealthChecks) -> None:
    checks.add("a", succeed)
    with pytest.raises(ValueError, match="already"):
        checks.add("a", succeed)


@pytest.mark.parametrize(
    "findings, excluded, verbose, text",
    [
        pytest.param([Finding("a")], [], False, "ok", id="healthy"),
        pytest.param([Finding("a")], [], True, "[+]a ok\nhealthz check passed\n", id="healthy, verbose"),
        pytest.param(
            [Finding("a"), Finding("b", "broken")],
            [],
            False,
            "[+]a ok\n[-]b failed: broken\nhealthz check failed\n",
            id="unhealthy",
        ),
        pytest.param(
            [Finding("a", is_excluded=True)],
            ["a", "z\nq"],
            True,
            "[+]a excluded: ok\nwarn: no checks to exclude: z q\nhealthz check passed\n",
            id="excluded",
        ),
    ],
)
def test_the_report_should_say_what_is_wrong(
    findings: list[Finding], excluded: list[str], verbose: bool, text: str
) -> None:
    assert render("healthz", findings, excluded, verbose=verbose) == text
