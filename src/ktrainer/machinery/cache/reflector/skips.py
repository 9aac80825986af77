"""Objects that are passed over: each is counted, and named in the log once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ktrainer.machinery.cache.delta import Skip
from ktrainer.machinery.cache.once import Once

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.record import InformerRecord, SkipReason

_log = structlog.get_logger(__name__)

_DETAIL_LIMIT = 200
"""Characters of an explanation that are worth a place in the log."""


class Skips:
    """The skipped objects of one informer."""

    def __init__(self, name: str, record: InformerRecord) -> None:
        self._name = name
        self._record = record
        self._once = Once()

    def skip(self, reason: SkipReason, key: ObjectKey | None, detail: str) -> Skip:
        """Note that an object is passed over; `key` is None where not even that can be told."""
        self._record.skips[reason] += 1
        if self._once.is_new((reason, key)):
            _log.warning(
                "object is passed over",
                informer=self._name,
                key=None if key is None else str(key),
                reason=reason.value,
                detail=detail[:_DETAIL_LIMIT],
            )
        return Skip(key)
