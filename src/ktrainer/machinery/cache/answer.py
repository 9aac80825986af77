"""What the server's answer to a write tells of the object that it has stored."""

from __future__ import annotations

import msgspec

from ktrainer.machinery.cache.reflector.jsonparts import members_of


class _Version(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""


class _Answer(msgspec.Struct, gc=False):
    metadata: _Version


def version_in(answer: bytes) -> str:
    """The version of the object, however deep it is nested: what was written need not be all that it holds.

    Raises ValueError for what is no object.
    """
    try:
        return msgspec.json.decode(answer, type=_Answer).metadata.resource_version
    except RecursionError:
        return msgspec.json.decode(members_of(answer).get("metadata", b""), type=_Version).resource_version
