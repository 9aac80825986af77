"""One copy of each string that thousands of objects have in common, such as namespaces and label keys.

Not `sys.intern`: some versions of Python never free what was interned, and names come and go with the objects.
"""

from __future__ import annotations

LIMIT = 4096
"""How many strings a pool holds."""


class StringPool:
    """A bounded pool; each informer has its own. A pool that is full starts afresh, so that it follows the times."""

    def __init__(self) -> None:
        self._strings: dict[str, str] = {}

    def share(self, text: str) -> str:
        """Return an equal string, as a rule the one that others got before."""
        shared = self._strings.get(text)
        if shared is not None:
            return shared
        if len(self._strings) >= LIMIT:
            self._strings.clear()
        self._strings[text] = text
        return text

    def share_keys(self, mapping: dict[str, str]) -> dict[str, str]:
        """Return an equal map whose keys are shared."""
        share = self.share
        return {share(key): value for key, value in mapping.items()}
