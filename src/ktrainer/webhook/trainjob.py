"""Admission of TrainJobs: the runtime that a TrainJob refers to judges it, as it does in a reconcile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import orjson

from ktrainer.api.decoding import decode
from ktrainer.api.resources import TRAINJOBS
from ktrainer.api.trainjob import TrainJob, trainer_of
from ktrainer.framework.findings import Findings
from ktrainer.kube.access import Access
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, allowed, denied
from ktrainer.runtime.errors import UnsupportedRuntime
from ktrainer.webhook.answer import answer_of
from ktrainer.webhook.registration import SCALE
from ktrainer.webhook.update import is_harmless

if TYPE_CHECKING:
    from ktrainer.framework.reader import Reader
    from ktrainer.kube.fields import ErrorList
    from ktrainer.runtime.registry import Runtimes


class _ScaleSpec(msgspec.Struct):
    replicas: int = 0


class _Scale(msgspec.Struct):
    spec: _ScaleSpec = msgspec.field(default_factory=_ScaleSpec)


ACCESS: Final = (Access(TRAINJOBS, ("get",)),)

_SCALES: Final = msgspec.json.Decoder(_Scale)


class TrainJobValidator:
    """Judges TrainJobs that are created, updated or scaled. Holds nothing."""

    def __init__(self, runtimes: Runtimes, reader: Reader) -> None:
        self._runtimes = runtimes
        self._reader = reader

    async def handle(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer a request about a TrainJob; raises what keeps it from being judged."""
        if request.sub_resource == SCALE:
            return await self._judge_scale(request)
        if request.object is None or is_harmless(request):
            return allowed()
        new = decode(TrainJob, orjson.loads(request.object))
        if isinstance(new, list):
            return answer_of(Findings(new))
        return await self._judge(_old_of(request), new)

    async def _judge_scale(self, request: AdmissionRequest) -> AdmissionResponse:
        """Judge the TrainJob as it would be; the request holds no more of it than the number of its nodes."""
        value = await self._reader.fetch(TRAINJOBS, request.namespace, request.name, live=True)
        old = None if value is None else decode(TrainJob, value)
        if old is None or request.object is None:
            return allowed()  # it was deleted meanwhile: the API server will say so
        if isinstance(old, list):
            return answer_of(Findings(old))
        # Between two numbers it is a change of the number, also where none was given so far.
        before = _with_nodes(old, trainer_of(old).num_nodes)
        return await self._judge(before, _with_nodes(old, _SCALES.decode(request.object).spec.replicas))

    async def _judge(self, old: TrainJob | None, new: TrainJob) -> AdmissionResponse:
        try:
            runtime = self._runtimes.of(new.spec.runtime_ref)
        except UnsupportedRuntime as error:
            return denied(str(error))
        return answer_of(await runtime.validate(old, new))


def _old_of(request: AdmissionRequest) -> TrainJob | None:
    """The TrainJob before an update; none where it was stored under a schema that allowed what none does today."""
    if request.old_object is None:
        return None
    old: TrainJob | ErrorList = decode(TrainJob, orjson.loads(request.old_object))
    return None if isinstance(old, list) else old


def _with_nodes(trainjob: TrainJob, nodes: int | None) -> TrainJob:
    trainer = trainer_of(trainjob).model_copy(update={"num_nodes": nodes})
    return trainjob.model_copy(update={"spec": trainjob.spec.model_copy(update={"trainer": trainer})})
