"""Bytes to the API server and back: the interface, and aiohttp behind it."""
