"""Credentials from a plugin: a program that prints a token or a certificate, often with the time when it expires.

The plugin runs apart from the requests that wait for it, one at a time: a request that gives up does not stop it, and
the next one finds the result. Requests go on with what they have while it is being renewed before its time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from ktrainer.client.credentials.execplugin import run_plugin
from ktrainer.client.errors import CredentialsFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ktrainer.aio.clock import Clock
    from ktrainer.client.config.config import ExecPlugin
    from ktrainer.client.credentials.credentials import Grant
    from ktrainer.client.credentials.execplugin import Output

RENEW_SHARE = 0.8
"""The part of a grant's life after which it is renewed."""

REST_SECONDS = 10.0
"""The time between two runs at least, whatever the server or the plugin says."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    """A grant and its times on the monotonic clock."""

    grant: Grant
    renew_at: float
    expires_at: float


class ExecCredentials:
    """The grants of one plugin."""

    def __init__(
        self, plugin: ExecPlugin, clock: Clock, run: Callable[[ExecPlugin], Awaitable[Output]] = run_plugin
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._start = run
        self._held: _Held | None = None
        """What the plugin gave last; None before that, and after the server refused it."""
        self._run: asyncio.Task[None] | None = None
        """The run of the plugin that is under way."""
        self._ran_at: float | None = None
        """When the last run ended."""
        self._failure: CredentialsFailed | None = None
        """Why the last run failed, if it did."""

    async def grant(self) -> Grant:
        """Return a grant that has not expired; raises CredentialsFailed with what the plugin said."""
        now = self._clock.monotonic()
        held = self._held
        if held is not None and now < held.renew_at:
            return held.grant
        if self._run is None and (self._ran_at is None or now - self._ran_at >= REST_SECONDS):
            self._run = asyncio.create_task(self._renew(), name="credential plugin")
        if held is not None and now < held.expires_at:
            return held.grant
        if self._run is not None:
            await asyncio.wait([self._run])
        # What has expired although the plugin has just given it is tried: the clocks may differ.
        if self._held is not None and (self._failure is None or self._clock.monotonic() < self._held.expires_at):
            return self._held.grant
        raise CredentialsFailed(str(self._failure)) from self._failure

    def reject(self, grant: Grant) -> bool:
        """Forget the grant, unless the plugin has just given it: then it would give it again."""
        held = self._held
        if held is None or held.grant is not grant:
            return True
        if self._ran_at is not None and self._clock.monotonic() - self._ran_at < REST_SECONDS:
            return False
        self._held = None
        return True

    async def close(self) -> None:
        """Kill the plugin if it is running."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])

    async def _renew(self) -> None:
        """Run the plugin and keep what comes of it; raises nothing, since nobody may be waiting."""
        try:
            self._held = self._kept(await self._start(self._plugin))
            self._failure = None
        except CredentialsFailed as failure:
            self._failure = failure
            _log.warning("the credential plugin failed", reason=str(failure))
        except Exception as error:  # a bug of ours, or of a library; those who wait have to hear of it
            self._failure = CredentialsFailed(f"{self._plugin.source}: {type(error).__name__}: {error}")
            _log.exception("the credential plugin could not be run")
        except asyncio.CancelledError:
            self._failure = CredentialsFailed(f"{self._plugin.source}: the plugin was stopped")
            raise
        finally:
            self._ran_at = self._clock.monotonic()
            self._run = None

    def _kept(self, output: Output) -> _Held:
        now, seconds = self._clock.monotonic(), float("inf")
        if output.expires_at is not None:
            seconds = (output.expires_at - self._clock.now()).total_seconds()
        return _Held(output.grant, now + seconds * RENEW_SHARE, now + seconds)
