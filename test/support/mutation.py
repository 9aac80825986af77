"""Catching those who write into what a cache shares with everybody."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.machinery.cache.store import Store


@contextlib.contextmanager
def unmutated(*stores: Store[Any]) -> Iterator[None]:
    """Fail if an object that is in one of the stores now is another at the end, be it still there or not."""
    before = [(obj, msgspec.json.encode(obj)) for store in stores for obj in store.list()]
    yield
    changed = [str(obj.key) for obj, encoded in before if msgspec.json.encode(obj) != encoded]
    assert not changed, f"cached objects were written to: {changed}"
