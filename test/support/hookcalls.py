"""Calls of webhooks as an API server makes them, each on a connection of its own, so that each is a TLS handshake."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import ssl
import threading
import time
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusters.api import Api
from support.hooked import HOST, PATH
from support.reviews import accept, review

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.hookreplicas import HookReplicas

_TIMEOUT_SECONDS = 5.0
_BUNDLE_SECONDS = 1.0
"""The time between two looks at what the API server trusts."""


def call(port: int, bundle: str) -> bytes:
    """Ask a webhook, trusting these authorities only; return the certificate that it presented (DER).

    Raises OSError where there is no connection, and AssertionError where the answer is not one.
    """
    context = ssl.create_default_context(cadata=bundle)
    connection = http.client.HTTPSConnection(HOST, port, timeout=_TIMEOUT_SECONDS, context=context)
    with closing(connection):
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        certificate = connection.sock.getpeercert(binary_form=True) or b""
        connection.request("POST", PATH, review("u"), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, f"{answer.status}: {body!r}"
        assert accept(body, "u", is_mutating=False)["allowed"]
    return certificate


@dataclass
class Calls:
    """What became of the calls."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)
    presented: set[bytes] = field(default_factory=set)
    """The certificates that were seen (DER)."""
    _follows: bool = True
    _bundles: list[str] = field(default_factory=list)
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, api: Api, hooks: HookReplicas, is_wanted: bool) -> None:
        """Look at what the API server trusts, and say whether to look again: else what is seen now counts from now on.

        No look is under way any more when this returns.
        """
        with self._looking:
            self._bundles = hooks.bundles(api)
            self._follows = is_wanted

    def look(self, api: Api, hooks: HookReplicas) -> list[str]:
        """What the API server trusts for each replica, or did when that was to be followed."""
        with self._looking:
            if self._follows:
                self._bundles = hooks.bundles(api)
            return self._bundles


@asynccontextmanager
async def calling(kubeconfig: Path, hooks: HookReplicas, per_second: float) -> AsyncIterator[Calls]:
    """Call one replica after the other, in a thread, trusting what the API server trusts for it."""
    calls, ended = Calls(), threading.Event()

    def work() -> None:
        bundles: list[str] = []
        looked_at = 0.0
        with closing(Api(kubeconfig)) as api:
            for number in itertools.count():
                began = time.monotonic()
                if began - looked_at >= _BUNDLE_SECONDS:
                    bundles, looked_at = calls.look(api, hooks), began
                index = number % len(hooks.ports)
                try:
                    calls.presented.add(call(hooks.ports[index], bundles[index]))
                    calls.answered += 1
                except (OSError, AssertionError, http.client.HTTPException) as error:
                    calls.failures.append(f"{time.strftime('%H:%M:%S')} {hooks.ports[index]}: {error!r}")
                if ended.wait(max(0.0, began + 1 / per_second - time.monotonic())):
                    return

    task = asyncio.create_task(asyncio.to_thread(work), name="calls")
    try:
        yield calls
    finally:
        ended.set()
        await task
