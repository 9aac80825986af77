"""The cache of built programs and copied manifests: one folder per product and pin, shared by all checkouts of a user.

A file appears in it by renaming, once it is whole: what is there is finished, whatever was interrupted before.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.problem import writing_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.product import Product

VARIABLE = "XDG_CACHE_HOME"
_SCRATCH = ".unfinished-"


class Store:
    """The finished files of every product, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls) -> Store:
        """Return the store in the user's cache folder."""
        cache = os.environ.get(VARIABLE) or Path.home() / ".cache"
        return cls(Path(cache).absolute() / "ktrainer" / "controlplane")

    def path(self, product: Product, name: str) -> Path:
        """Return where the finished file `name` of a product is, or will be."""
        return self.folder / f"{product.name}-{product.digest()}" / name

    @contextmanager
    def filling(self, product: Product) -> Iterator[Path]:
        """Yield a scratch folder to build in, with no other process filling the same product; it is removed at the end.

        Raises Problem where the cache folder cannot be written.
        """
        target = self.path(product, "").absolute()
        with writing_to(self.folder, VARIABLE):
            target.mkdir(parents=True, exist_ok=True)
            handle = os.open(target, os.O_RDONLY)
        try:
            # Held by the folder itself, so that no lock file stays behind; released by the end of the process.
            fcntl.flock(handle, fcntl.LOCK_EX)
            for leftover in target.glob(f"{_SCRATCH}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with writing_to(self.folder, VARIABLE):
                scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=target))
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        finally:
            os.close(handle)

    def finish(self, product: Product, built: Path, name: str) -> Path:
        """Move a whole file from the scratch folder to its place and return that place."""
        with writing_to(self.folder, VARIABLE):
            return built.rename(self.path(product, name))
