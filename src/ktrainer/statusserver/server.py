"""The progress server as a part of the manager: listens, drains, and writes what was kept before it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ktrainer.machinery.serving.httpserver import HttpServer

if TYPE_CHECKING:
    import ssl

    from ktrainer.machinery.serving.address import Address
    from ktrainer.statusserver.desk import Desk
    from ktrainer.statusserver.handler import ProgressHandler

HEADER_SECONDS: Final = 10.0
"""How long a client may take to send a head."""


class ProgressServer:
    """Serves from `run` until `stop`."""

    def __init__(self, address: Address, context: ssl.SSLContext, handler: ProgressHandler, desk: Desk) -> None:
        self._server = HttpServer("progress", address, handler.handle, context=context, header_seconds=HEADER_SECONDS)
        self._desk = desk

    async def wait_listening(self) -> int:
        """Wait until connections are accepted, and return the port."""
        return await self._server.wait_listening()

    def stop(self) -> None:
        """Let `run` serve on for a while, finish what is under way, write what is kept, and come to its end."""
        self._server.stop()

    async def run(self) -> None:
        """Serve until `stop`; raises OSError, in a group, if the address is not to be had."""
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self._server.run(), name="progress connections")
            tasks.create_task(self._desk.run(), name="progress desk")
            # A report that comes while we drain may be kept, too.
            await asyncio.wait({serving})
            self._desk.stop()
