"""Where training pods report their progress, and for whom their tokens must be: what both sides have to agree on."""

from __future__ import annotations

import re
from typing import Final

from ktrainer.api.resources import API_VERSION
from ktrainer.kube.identity import ObjectKey

_LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PATH: Final = re.compile(
    rf"/apis/{re.escape(API_VERSION)}/namespaces/({_LABEL})/trainjobs/({_LABEL}(?:\.{_LABEL})*)/status", re.ASCII
)


def status_path_of(key: ObjectKey) -> str:
    """The path under which a TrainJob's progress is reported."""
    return f"/apis/{audience_of(key)}"


def audience_of(key: ObjectKey) -> str:
    """The audience of the tokens that are good for one TrainJob's progress."""
    return f"{API_VERSION}/namespaces/{key.namespace}/trainjobs/{key.name}/status"


def key_of(path: str) -> ObjectKey | None:
    """The TrainJob whose progress is reported under a path as it was sent; none where the path is another."""
    match = _PATH.fullmatch(path)
    return ObjectKey(match[1], match[2]) if match else None
