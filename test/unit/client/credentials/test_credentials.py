from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ktrainer.client.config.config import Authorization, ExecPlugin, TokenFile
from ktrainer.client.credentials.credentials import FileCredentials, FixedCredentials, Grant, build_credentials
from ktrainer.client.credentials.execcredentials import ExecCredentials
from ktrainer.client.errors import CredentialsFailed
from support.virtualtime import ManualClock


async def test_fixed_credentials_should_stay() -> None:
    credentials = FixedCredentials("Bearer x")
    grant = await credentials.grant()
    assert grant.header == "Bearer x"
    assert not credentials.reject(grant)
    assert await credentials.grant() is grant
    assert "x" not in repr(Grant("Bearer x")).removeprefix("Grant")
    await credentials.close()


async def test_a_token_should_be_read_again_after_fifty_seconds(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "token").write_text(" one\n")
    credentials = FileCredentials(tmp_path / "token", clock)
    first = await credentials.grant()
    assert first.header == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    clock.advance(49.9)
    assert await credentials.grant() is first
    clock.advance(0.1)
    assert (await credentials.grant()).header == "Bearer two"
    await credentials.close()


@pytest.mark.parametrize("content", [None, "", "\n", "two words", "é"])
async def test_a_token_that_cannot_be_read_should_leave_the_old_one(tmp_path: Path, content: str | None) -> None:
    clock = ManualClock()
    path = tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(path, clock)
    first = await credentials.grant()
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    clock.advance(60)
    with capture_logs() as logs:
        assert await credentials.grant() is first
        assert await credentials.grant() is first
    assert len(logs) == 1
    with pytest.raises(CredentialsFailed, match=str(path)):
        await FileCredentials(path, clock).grant()


async def test_a_rejected_token_should_be_read_again_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    path = tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(path, clock)
    first = await credentials.grant()
    assert not credentials.reject(first)
    assert await credentials.grant() is first
    path.write_text("two")
    assert credentials.reject(first)
    second = await credentials.grant()
    assert second.header == "Bearer two"
    # Requests that left with the first token and are answered late say nothing about the second.
    assert credentials.reject(first)
    assert await credentials.grant() is second


def test_the_credentials_should_be_those_of_the_configuration(tmp_path: Path) -> None:
    clock = ManualClock()
    assert isinstance(build_credentials(None, clock), FixedCredentials)
    assert isinstance(build_credentials(Authorization("Basic x"), clock), FixedCredentials)
    assert isinstance(build_credentials(TokenFile(tmp_path), clock), FileCredentials)
    assert isinstance(build_credentials(ExecPlugin("", "", ""), clock), ExecCredentials)
