"""The ways to describe a change to an object."""

from __future__ import annotations

from enum import StrEnum


class PatchType(StrEnum):
    """A kind of patch; the value is its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    """For built-in kinds only: servers know no merge keys of custom ones."""
    APPLY = "application/apply-patch+yaml"
    """Server-side apply; JSON is YAML, so the body may be either."""
