"""Reads what is not in the files from a cluster.

Only what TrainJobs are built from is looked for there, and not what an earlier pass may have made of them: a command
shows what a TrainJob becomes, not what is left to do. The cluster is not asked before something is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, NAMESPACES, PRIORITY_CLASSES, TRAINING_RUNTIMES
from ktrainer.app.documents import Unreachable
from ktrainer.client.config.config import ConfigError, load_config
from ktrainer.client.connect import connect
from ktrainer.client.errors import TransportError
from ktrainer.kube.errors import ApiError, NotFound
from ktrainer.kube.identity import ObjectKey

if TYPE_CHECKING:
    from ktrainer.app.documents import DocumentReader
    from ktrainer.client.connect import Connection
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

_INPUTS: Final = frozenset({TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, NAMESPACES, PRIORITY_CLASSES})


class ClusterReader:
    """Reads from documents first, and then from the cluster of a kubeconfig; `close` it in the end."""

    def __init__(self, documents: DocumentReader, kubeconfig: str | None, context: str | None) -> None:
        self._documents = documents
        self._kubeconfig = Path(kubeconfig) if kubeconfig else None
        self._context = context
        self._connection: Connection | None = None

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """The object; none where neither has it. Raises Unreachable where the cluster cannot be asked."""
        found = await self._documents.fetch(resource, namespace, name)
        key = ObjectKey(namespace, name)
        if found is not None or resource not in _INPUTS or not live or not key.may_exist:
            return found
        try:
            self._connection = self._connection or self._connect()
            answer = await self._connection.unfenced.get(resource, key)
        except NotFound as error:
            if error.reason == "NotFound":
                return None
            # An API server without the CRD, or something else than an API server.
            raise Unreachable(f"it does not serve {resource.group_kind}: {error}") from error
        except (ConfigError, TransportError, ApiError) as error:
            raise Unreachable(str(error)) from error
        return _object_of(answer)

    def _connect(self) -> Connection:
        config = load_config(self._kubeconfig, self._context)
        return connect(
            config, component="ktrainer", clock=SystemClock(), registry=CollectorRegistry(), qps=50, burst=100
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.close()


def _object_of(answer: bytes) -> JsonObject:
    """The object in an answer. Raises Unreachable for anything else: whoever sent it, it was no API server."""
    try:
        value: Any = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the answer is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise Unreachable("the answer is not an object of Kubernetes")
    return value
