"""A small synchronous client of an API server, for installing things into a cluster and for looking at it in tests.

It is deliberately not ktrainer's own client: what tests see must not depend on what they test.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

Object = dict[str, Any]

_TIMEOUT_SECONDS = 30.0
_IDLE_SECONDS = 30.0
"""How long a connection may rest before another is opened: API servers close theirs after 90."""


class Refused(Exception):
    """An answer that is not a success; `status` is the Status object, or what came instead."""

    def __init__(self, code: int, status: Object) -> None:
        super().__init__(f"{code} {status.get('reason', '')}: {status.get('message', '')}")
        self.code = code
        self.status = status


class Api:
    """One connection to an API server; not for use by several threads at a time."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        current = next(each["context"] for each in document["contexts"] if each["name"] == document["current-context"])
        cluster = next(each["cluster"] for each in document["clusters"] if each["name"] == current["cluster"])
        user = next(each["user"] for each in document["users"] if each["name"] == current["user"])
        self._address = urlsplit(cluster["server"])
        self._tls = _context(cluster, user)
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._connection: http.client.HTTPSConnection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        """Send one request and return the object in the answer; raise Refused on anything but a success."""
        headers = {**self._headers, "Accept": "application/json", "Content-Type": content_type}
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                str(self._address.hostname), self._address.port, timeout=_TIMEOUT_SECONDS, context=self._tls
            )
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            content = answer.read()
            self._used_at = time.monotonic()
        except BaseException:
            # The connection is in the middle of something: no further request may use it.
            self.close()
            raise
        try:
            document: Object = json.loads(content)
        except ValueError:
            document = {"message": content.decode(errors="replace")}
        if answer.status >= 400:
            raise Refused(answer.status, document)
        return document

    def get(self, path: str) -> Object:
        """Return one object, or a list of them."""
        return self.request("GET", path)

    def exists(self, path: str) -> bool:
        """Whether there is an object at `path`; raises Refused where that cannot be told."""
        try:
            self.get(path)
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return False
        return True

    def create(self, path: str, body: Object) -> Object:
        """Create an object in the collection at `path`."""
        return self.request("POST", path, body)

    def apply(self, path: str, body: Object, manager: str = "hack-cluster") -> Object:
        """Apply an object on the server, whoever owns its fields."""
        query = urlencode({"fieldManager": manager, "force": "true"})
        return self.request("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")

    def merge(self, path: str, body: Object) -> Object:
        """Change an object by a merge patch."""
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Object:
        """Delete an object; its dependents follow in the background."""
        return self.request("DELETE", path, {"propagationPolicy": "Background"})


def _context(cluster: Object, user: Object) -> ssl.SSLContext:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if "client-certificate-data" in user:
        chain = base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
        # The ssl module reads certificates of its own side only from files.
        handle, path = tempfile.mkstemp()
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(chain)
            context.load_cert_chain(path)
        finally:
            Path(path).unlink()
    return context
