"""What a developer can mend: an error that is one sentence, shown without a traceback."""

from __future__ import annotations

import errno
import shutil
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Problem(Exception):
    """An error whose text says what is wrong and what to do; the programs under hack/ exit with 1 on it."""


@contextmanager
def writing_to(folder: Path, variable: str) -> Iterator[None]:
    """Turn a refusal of the file system below `folder`, which `variable` moves elsewhere, into a Problem."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Problem(
                f"no space is left on the disk of {folder}: free some, or set {variable} elsewhere."
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR):
            reason = (error.strerror or str(error)).lower()
            raise Problem(
                f"cannot write to {folder} ({reason}): set {variable} to a folder that you can write to."
            ) from error
        raise


def check_space(folder: Path, needed: int, variable: str) -> None:
    """Raise Problem where the disk that holds `folder`, which `variable` moves elsewhere, has too few bytes free."""
    existing = next(path for path in [folder, *folder.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise Problem(
            f"{needed / 1e9:.1f} GB are needed on the disk of {folder}, {free / 1e9:.1f} GB are free: "
            f"free some, or set {variable} elsewhere."
        )


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def told_to_the_user() -> Iterator[None]:
    """End the program with the sentence of a Problem, or quietly after Ctrl-C or another wish that it end.

    Also where it was started in the background of a script, which makes programs deaf to Ctrl-C.
    """
    for number in _INTERRUPTS:
        signal.signal(number, _interrupt)
    try:
        yield
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _interrupt(*_: object) -> NoReturn:
    # Once: what is being removed now must not be interrupted by an impatient second signal.
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
