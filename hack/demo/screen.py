"""Shows rows to a person: a table that changes in place on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo.jobs import Row

_HEADER = ("TRAINJOB", "RUNTIME", "STATE", "NODES", "TIME", "JOBS")
_COLOURS = {"Complete": "32", "Failed": "31", "Running": "36"}


class Screen(Protocol):
    """Something that shows the rows as they are now."""

    def show(self, rows: Sequence[Row]) -> None:
        """Show them; called as often as they may have changed."""
        ...


def screen_for(stream: TextIO) -> Screen:
    """A table on a terminal, lines anywhere else."""
    return Table(stream) if stream.isatty() else Lines(stream)


class Lines:
    """Writes a line whenever a row has another state or note than before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: dict[str, tuple[str, str]] = {}
        """Name → state and note of the last line."""

    def show(self, rows: Sequence[Row]) -> None:
        """Write the lines that are due."""
        for row in rows:
            told = (row.state, row.note)
            if row.state and self._shown.get(row.name) != told:
                self._shown[row.name] = told
                note = f"  {row.note}" if row.note else ""
                print(f"{row.seconds:6.0f} s  {row.name:16}{row.state}{note}", file=self._stream, flush=True)


class Table:
    """Draws over its last table; the cursor stays below it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0

    def show(self, rows: Sequence[Row]) -> None:
        """Draw the table."""
        width = shutil.get_terminal_size().columns
        lines = build_table(rows, width)
        up = f"\x1b[{self._height}A" if self._height else ""
        # Each line is cleared to its end, and what is below the table as well: it may have become shorter.
        text = up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J"
        self._stream.write(text)
        self._stream.flush()
        self._height = len(lines)


def build_table(rows: Sequence[Row], width: int) -> list[str]:
    """The lines of a table that fits the width; the state is coloured."""
    cells = [_HEADER, *[_cells_of(row) for row in rows]]
    widths = [max(len(line[column]) for line in cells) + 2 for column in range(len(_HEADER))]
    lines = []
    for line in cells:
        text = "".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True))[: max(width - 1, 20)].rstrip()
        colour = _COLOURS.get(line[2])
        lines.append(text.replace(line[2], f"\x1b[{colour}m{line[2]}\x1b[0m", 1) if colour else text)
    return lines


def _cells_of(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.runtime,
        row.state or "-",
        str(row.nodes),
        f"{row.seconds:.0f} s",
        row.note or row.pods,
    )
