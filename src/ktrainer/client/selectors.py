"""Which objects of a collection a list or a watch is about; the server does the selecting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selectors:
    """A label and a field selector in the server's own syntax; empty selects everything."""

    labels: str = ""
    """For example `app=trainer,tier!=test`."""

    fields: str = ""
    """For example `metadata.name=config`."""


EVERYTHING = Selectors()
