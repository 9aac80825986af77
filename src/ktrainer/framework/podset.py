"""The pods of one replicated job, as plugins see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import ANCESTOR, Ancestor
from ktrainer.framework.container import Container, EnvLog, add_volumes
from ktrainer.framework.resources import Requests, pod_requests_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.kube.jsonvalue import JsonObject

NODE: Final = "node"
"""The name of the container that trains, and of the job whose pods are the nodes."""

_ANCESTORS: Final = frozenset(Ancestor)


class PodSet:
    """A view of a replicated job in the template: what is written to it is in the JobSet.

    `count` alone is kept beside the template; when all plugins have spoken, it becomes parallelism and completions.
    """

    __slots__ = ("_hosts", "_log", "_subdomain", "ancestor", "containers", "count", "init_containers", "job", "name")

    def __init__(self, job: JsonObject, trainjob: str, subdomain: str, log: EnvLog) -> None:
        """`job` is an entry of `replicatedJobs` with a whole pod template; counts one pod by default."""
        self.job = job
        """The replicated job, as plain JSON."""
        self.name: str = job["name"]
        """The name of the replicated job."""
        labels = (job["template"].get("metadata") or {}).get("labels") or {}
        self.ancestor: str | None = labels.get(ANCESTOR)
        """The part that the job has in training, by the label on its job template; see `Ancestor`."""
        self._hosts = f"{trainjob}-{self.name}"
        self._subdomain = subdomain
        self._log = log
        self.count: int = max(job["template"]["spec"].get("parallelism") or 1, 1)
        """How many pods there are; at least one."""
        self.containers = [Container(spec, log) for spec in self.pod_spec["containers"]]
        self.init_containers = [Container(spec, log) for spec in self.pod_spec.get("initContainers") or ()]

    @property
    def replicas(self) -> int:
        """How many Jobs the replicated job has: one where its ancestor is known, whatever the template says."""
        return 1 if self.ancestor in _ANCESTORS else self.job.get("replicas", 1)

    @property
    def pod_template(self) -> JsonObject:
        """The pod template."""
        template: JsonObject = self.job["template"]["spec"]["template"]
        return template

    @property
    def pod_spec(self) -> JsonObject:
        """The spec of the pod template."""
        spec: JsonObject = self.pod_template["spec"]
        return spec

    @property
    def endpoints(self) -> Iterator[str]:
        """The DNS names of the pods, one by one: none is made before it is asked for."""
        hosts, subdomain, count = self._hosts, self._subdomain, self.count
        for replica in range(self.replicas):
            for pod in range(count):
                yield f"{hosts}-{replica}-{pod}.{subdomain}"

    @property
    def first_endpoint(self) -> str:
        """The DNS name of the first pod: where the others find the one that leads."""
        return f"{self._hosts}-0-0.{self._subdomain}"

    @property
    def requests(self) -> Requests:
        """What one of the pods asks of its node."""
        return pod_requests_of(self.pod_spec)

    def container(self, name: str) -> Container | None:
        """The container of a name; init containers are not looked at."""
        return next((container for container in self.containers if container.name == name), None)

    def init_container(self, name: str) -> Container | None:
        """The init container of a name."""
        return next((container for container in self.init_containers if container.name == name), None)

    def add_init_container(self, spec: JsonObject) -> None:
        """Add an init container that runs after those that are there."""
        self.pod_spec["initContainers"] = [*(self.pod_spec.get("initContainers") or ()), spec]
        self.init_containers.append(Container(spec, self._log))

    def add_volumes(self, *volumes: JsonObject) -> None:
        """Give the pods volumes; another one of the same name makes way."""
        add_volumes(self.pod_spec, *volumes)
