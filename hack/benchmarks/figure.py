"""A measured figure, its target, and the table of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Figure:
    """One figure. It is met when it is at most its target, or at least, where more is better."""

    name: str
    value: float
    unit: str
    target: float
    is_more_better: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.is_more_better else self.value <= self.target

    def __str__(self) -> str:
        sign = "≥" if self.is_more_better else "≤"
        verdict = "met" if self.is_met else "MISSED"
        return f"{self.name:58} {_number(self.value):>12} {self.unit:6} {sign} {_number(self.target):>10}  {verdict}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_figures(figures: Sequence[Figure]) -> int:
    """Print the table and return the exit code: 1 where a target is missed."""
    for figure in figures:
        print(figure)
    missed = sum(not figure.is_met for figure in figures)
    print(f"\n{len(figures) - missed} of {len(figures)} targets met")
    return 1 if missed else 0
