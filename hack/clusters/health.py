"""Whether components are ready: asked at their own addresses."""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from clusters.folder import Folder
    from clusters.processes import Component

_TIMEOUT_SECONDS = 2.0


def is_ready(folder: Folder, component: Component) -> bool:
    """Return whether the component's probe answers 200 now."""
    address = urlsplit(component.probe)
    host, port = str(address.hostname), address.port
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        connection = http.client.HTTPSConnection(
            host, port, timeout=_TIMEOUT_SECONDS, context=_context(folder, component)
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", address.path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _context(folder: Folder, component: Component) -> ssl.SSLContext:
    if component.name != "etcd":
        return ssl.create_default_context(cafile=folder.file("pki", "ca.crt"))
    context = ssl.create_default_context(cafile=folder.file("pki", "etcd-ca.crt"))
    context.load_cert_chain(folder.file("pki", "etcd-client.crt"), folder.file("pki", "etcd-client.key"))
    return context
