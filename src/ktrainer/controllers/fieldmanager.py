"""The name that the writes of all our controllers go by."""

from __future__ import annotations

from typing import Final

FIELD_MANAGER: Final = "trainer"
"""That of the original, so that an upgrade in place leaves no second owner."""
