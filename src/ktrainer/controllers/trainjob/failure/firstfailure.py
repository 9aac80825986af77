"""What failed first in the last attempt of a job: the one thing to look at, out of all that fell over after it.

The pods are listed live when a job fails or restarts; no pod is watched. All of them are listed, not just those of
phase Failed: JobSet's default restart policy is OnFailure, so that the pod in which something failed is usually
Running, about to be deleted, or both.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from ktrainer.api.labels import JOBSET_NAME, REPLICATED_JOB_NAME
from ktrainer.api.resources import PODS
from ktrainer.api.trainjobstatus import FirstFailure
from ktrainer.client.selectors import Selectors
from ktrainer.controllers.paging import Page, pages_of
from ktrainer.controllers.trainjob.failure.podfailure import RECOVERED_SECONDS, SKEW_SECONDS, failures_of
from ktrainer.controllers.trainjob.failure.podstatus import Pod, disruption_of, moment_of
from ktrainer.kube.access import Access

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ktrainer.controllers.trainjob.failure.podfailure import Failure
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.source import ListerWatcher

ACCESS: Final = (Access(PODS, ("list",)),)

RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
"""On pods, set by JobSet: how often the JobSet had been restarted when the pod was made."""

PAGES: Final = 100
"""How many pages are looked at, so that no job is too large to be looked at."""

_NAME_LIMIT: Final = 253
_REASON_LIMIT: Final = 1024
_MESSAGE_LIMIT: Final = 2048
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


# A pod that cannot be read must not hide the others of its page.
_RAW_PAGES: Final = msgspec.json.Decoder(Page[Raw])


async def fetch_first_failure(
    client: ListerWatcher, trainjob: ObjectKey, created_at: str | None
) -> FirstFailure | None:
    """What failed first among the pods that a TrainJob has now. Raises ApiError and TransportError.

    `created_at` is the creation of the TrainJob: pods that are older belonged to another one of that name.
    """
    selectors = Selectors(labels=f"{JOBSET_NAME}={trainjob.name}")
    created = moment_of(created_at)
    search, count = Search(), 0
    async with aclosing(pages_of(client, PODS, _RAW_PAGES, namespace=trainjob.namespace, selectors=selectors)) as pages:
        async for page in pages:
            for pod in _pods_in(page):
                born = moment_of(pod.metadata.creation_timestamp)
                if created is None or born is None or born.seconds >= created.seconds:
                    search.look_at(pod)
            count += 1
            if count == PAGES:
                break
    return search.result()


def _pods_in(page: Iterable[Raw]) -> Iterator[Pod]:
    for raw in page:
        try:
            yield msgspec.json.decode(raw, type=Pod)
        except msgspec.ValidationError:
            continue


class Search:
    """Keeps what can still turn out to be the first, and no pod of which nothing failed."""

    def __init__(self) -> None:
        self._found: list[Failure] = []
        self._last_seconds = float("-inf")
        """When the last failure was: the present, as far as the failures are concerned."""

    def look_at(self, pod: Pod) -> None:
        """Take a pod into account."""
        for failure in failures_of(pod):
            self._found.append(failure)
            self._last_seconds = max(self._last_seconds, failure.at.seconds)

    def result(self) -> FirstFailure | None:
        """What failed first in the latest attempt in which something failed by itself; none where nothing did."""
        first = min(filter(self._counts, self._found), key=_order_of, default=None)
        return None if first is None else _report_of(first)

    def _counts(self, failure: Failure) -> bool:
        resumed_at = failure.resumed_at
        return resumed_at is None or self._last_seconds - resumed_at.seconds < RECOVERED_SECONDS


def _order_of(failure: Failure) -> tuple[int, float, bool, str, str]:
    # A container that was told to end, as when a launcher ends its nodes, may seem to end before what came first.
    allowance = SKEW_SECONDS if failure.is_killed else 0.0
    metadata = failure.pod.metadata
    return (
        -_attempt_of(failure.pod),
        failure.at.seconds + allowance,
        failure.is_killed,
        metadata.name or "",
        failure.container or "",
    )


def _attempt_of(pod: Pod) -> int:
    text = (pod.metadata.labels or {}).get(RESTART_ATTEMPT, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _report_of(failure: Failure) -> FirstFailure:
    pod = failure.pod
    return FirstFailure(
        time=failure.at.text,
        job=_word((pod.metadata.labels or {}).get(REPLICATED_JOB_NAME), _NAME_LIMIT),
        pod=_word(pod.metadata.name, _NAME_LIMIT),
        node=_word(pod.spec.node_name, _NAME_LIMIT),
        container=_word(failure.container, _NAME_LIMIT),
        exit_code=failure.exit_code,
        signal=failure.signal,
        reason=_word(failure.reason, _REASON_LIMIT),
        message=_message_of(failure),
    )


def _message_of(failure: Failure) -> str | None:
    """The last words of the container, of which the end matters, else those of who ended the pod."""
    if failure.message and (words := _cleaned(failure.message)):
        return words[-_MESSAGE_LIMIT:].decode(errors="ignore")
    disruption = disruption_of(failure.pod)
    return _word(failure.pod.status.message or (disruption.message if disruption else None), _MESSAGE_LIMIT)


def _word(text: str | None, limit: int) -> str | None:
    """A text of at most so many bytes in UTF-8; None instead of an empty one."""
    return _cleaned(text or "")[:limit].decode(errors="ignore") or None


def _cleaned(text: str) -> bytes:
    """UTF-8 in one line, without control characters: it is shown in tables and terminals."""
    lines = (_CONTROLS.sub(" ", line).strip() for line in text.splitlines())
    return " | ".join(filter(None, lines)).encode(errors="replace")
