"""Hypothesis strategies for JSON values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "c", "a/b", "~", "~1", "", "0"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "x", "é"])
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
"""Small values from few leaves, so that two of them often have parts in common."""

OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(KEYS, VALUES, max_size=4)
