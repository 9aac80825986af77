"""Certificates for tests of TLS, made by other code than ours."""

from __future__ import annotations

from clusters.pki import Authority


class Issuer:
    """An authority, and pairs for localhost that it has issued."""

    def __init__(self) -> None:
        self._authority = Authority("test")
        self.authority = self._authority.certificate

    def pair(self, name: str = "localhost") -> tuple[bytes, bytes]:
        """A new certificate, good for servers and clients, and its key."""
        pair = self._authority.issue(name, serving=True)
        return pair.certificate, pair.key

    def client_pair(self, name: str = "someone") -> tuple[bytes, bytes]:
        """A new certificate that is good for clients only, and its key."""
        pair = self._authority.issue(name)
        return pair.certificate, pair.key
