"""A readiness check of a TLS server: whether a handshake with our own port succeeds.

It does not judge the certificate, which is for others than us.
"""

from __future__ import annotations

import asyncio
import ssl

DIAL_SECONDS = 10.0


async def dial(host: str, port: int, timeout_seconds: float = DIAL_SECONDS) -> None:
    """Connect, shake hands and hang up; raises OSError or TimeoutError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(timeout_seconds):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.transport.abort()
