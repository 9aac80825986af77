"""How much a pod asks for, and how many processors a node has.

Quantities are those that the spec names: neither limits stand in for requests, nor do the defaults of a namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.kube.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.kube.jsonvalue import JsonObject

Requests = dict[str, Quantity]

_POD_LEVEL: Final = frozenset({"cpu", "memory"})
_POD_LEVEL_PREFIX: Final = "hugepages-"


def gpu_count_of(resources: JsonObject) -> int:
    """The GPUs of a container, by requests or else by limits: of any resource with gpu in its name.

    Where there are several such resources, the first by name of which there is any counts.
    """
    return _gpus(resources.get("requests") or {}) or _gpus(resources.get("limits") or {})


def cpu_count_of(resources: JsonObject) -> int:
    """The CPUs of a container, by requests or else by limits; a part of a CPU counts as one, and none as none."""
    return _cpus(resources.get("requests") or {}) or _cpus(resources.get("limits") or {})


def pod_requests_of(pod_spec: JsonObject) -> Requests:
    """What one pod asks of its node.

    Containers and sidecars run together; each other init container runs with the sidecars that were started before it.
    Requests at the level of the pod take the place of these sums; the overhead of its runtime class comes on top.

    Parity: k8s.io/component-helpers/resource.PodRequests.
    """
    total: Requests = {}
    for container in pod_spec.get("containers") or ():
        _add(total, _requests(container))
    _raise_to(total, _init_requests(pod_spec, total))
    for name, quantity in _requests(pod_spec).items():
        if name in _POD_LEVEL or name.startswith(_POD_LEVEL_PREFIX):
            total[name] = quantity
    _add(total, _parsed(pod_spec.get("overhead") or {}))
    return total


def sum_of(single: Requests, count: int, total: Requests) -> None:
    """Add the requests of so many pods to a total."""
    _add(total, {name: quantity * count for name, quantity in single.items()})


def _init_requests(pod_spec: JsonObject, total: Requests) -> Requests:
    """The most that the init containers need at any time; sidecars are added to the total as well."""
    sidecars: Requests = {}
    most: Requests = {}
    for container in pod_spec.get("initContainers") or ():
        needed = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            _raise_to(most, sidecars)
        else:
            _add(needed, sidecars)
            _raise_to(most, needed)
    return most


def _requests(container: JsonObject) -> Requests:
    return _parsed((container.get("resources") or {}).get("requests") or {})


def _parsed(quantities: Mapping[str, str]) -> Requests:
    return {name: Quantity.parse(quantity) for name, quantity in quantities.items()}


def _add(total: Requests, more: Requests) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise_to(total: Requests, least: Requests) -> None:
    for name, quantity in least.items():
        if name not in total or total[name] < quantity:
            total[name] = quantity


def _gpus(quantities: Mapping[str, str]) -> int:
    counts = (Quantity.parse(quantities[name]).value for name in sorted(quantities) if "gpu" in name.lower())
    return next((count for count in counts if count), 0)


def _cpus(quantities: Mapping[str, str]) -> int:
    return Quantity.parse(quantities["cpu"]).value if "cpu" in quantities else 0
