"""What validation has to say about a TrainJob or a runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.kube.fields import ErrorList


@dataclass(slots=True)
class Findings:
    """Errors, which refuse the object, and warnings, which only tell."""

    errors: ErrorList = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    passable: ErrorList = field(default_factory=list)
    """Errors that refuse a TrainJob which is created or changed; one that has begun goes on without regard to them."""

    def add(self, other: Findings) -> None:
        """Take over all that another one found."""
        self.errors += other.errors
        self.warnings += other.warnings
        self.passable += other.passable

    def refuse_all(self) -> None:
        """Let the errors refuse that a TrainJob which has begun would pass with."""
        self.errors += self.passable
        self.passable = []
