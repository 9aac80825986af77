"""Terminators for programs that run inside a test."""

from __future__ import annotations


class Patient:
    """Ends nothing: a program that stops in a test must not take the process of the tests along, then or later."""

    def exit_now(self) -> None:
        """Tell that the process would have been ended."""
        raise AssertionError("the process would have ended")

    def exit_after(self, seconds: float) -> None:
        """Let the program take its time."""


class Noting:
    """Only notes what it was asked to do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def exit_now(self) -> None:
        """Note it."""
        self.asked.append("now")

    def exit_after(self, seconds: float) -> None:
        """Note it."""
        self.asked.append(f"after {seconds:g}")
