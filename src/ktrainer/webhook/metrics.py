"""How often the webhook says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter

from ktrainer.machinery.admission.hook import Operation

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Handler


class Denials:
    """Counts what is refused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = Counter(
            "ktrainer_admission_denials",
            "TrainJobs and runtimes that the webhook refused.",
            ("kind", "operation"),
            registry=registry,
        )

    def counted(self, kind: str, handle: Handler) -> Handler:
        """The same handler, whose refusals are counted; all series of the kind exist from now on."""
        counters = {each: self._counter.labels(kind, each) for each in (Operation.CREATE, Operation.UPDATE)}

        async def handle_and_count(request: AdmissionRequest) -> AdmissionResponse:
            response = await handle(request)
            if not response.is_allowed and request.operation in counters:
                counters[request.operation].inc()
            return response

        return handle_and_count
