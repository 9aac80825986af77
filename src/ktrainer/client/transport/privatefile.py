"""Contents as a file that nobody else can read: the ssl module takes a certificate and its key in no other form."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """The path of a file with this content, which is gone afterwards."""
    if hasattr(os, "memfd_create"):
        # Works in a container whose file system is read-only.
        with open(os.memfd_create("pair"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:  # pragma: no cover - not Linux
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
