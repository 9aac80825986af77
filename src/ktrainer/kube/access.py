"""What code asks of an API server, as data: a module that makes requests lists them under the name `ACCESS`.

`hack/gen_rbac.py` collects the lists and writes the manager's roles from them. Nothing reads them at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource


@dataclass(frozen=True, slots=True)
class Access:
    """Requests for one resource."""

    resource: Resource
    verbs: tuple[str, ...]
    """As RBAC calls them. A server-side apply of what may be missing is both `create` and `patch`."""
    subresource: str = ""
    names: tuple[str, ...] = ()
    """The only objects that are asked for; all if empty."""
    is_own: bool = False
    """Whether the objects are in the manager's own namespace."""
    is_implied: bool = False
    """Whether the API server checks it in the course of other requests, so that no request in an audit log shows it."""
