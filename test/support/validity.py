"""Lets the published definitions of Kubernetes judge an object."""

from __future__ import annotations

from typing import Any

import kubernetes_validate  # type: ignore[import-untyped] # it comes without types


def assert_valid(value: dict[str, Any]) -> None:
    """Fail unless the object is one of its kind, without a field too many."""
    kubernetes_validate.validate(value, "1.36", strict=True)
