"""The metadata that a template may carry: what is put on the objects that are made from it."""

from __future__ import annotations

from pydantic import Field

from ktrainer.api.model import Model


class TemplateMeta(Model):
    """Metadata for objects that do not exist yet."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels to put on the objects."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations to put on the objects."""
    name: str | None = None
    """Accepted for compatibility, and not used."""
    namespace: str | None = None
    """Accepted for compatibility, and not used."""
    finalizers: list[str] = Field(default_factory=list)
    """Accepted for compatibility, and not used."""
