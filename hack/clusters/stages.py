"""What happens to pods on the fake nodes, as stages of kwok.

A scheduled pod runs at once. A pod of a Job ends by itself; annotations on the pod say how:

- `fake-node/runs-for`: how long it runs, as a Go duration (`90s`); at once without it.
- `fake-node/exit-code`: the exit code that its containers end with; 0, a success, without it.
- `fake-node/reason`: the reason that is told for that exit code, `OOMKilled` for example; `Error` without it.
"""

from __future__ import annotations

from typing import Any

import yaml

RUNS_FOR = "fake-node/runs-for"
EXIT_CODE = "fake-node/exit-code"
REASON = "fake-node/reason"

_ANNOTATION = '.metadata.annotations["{}"]'
_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

_NODE_STATUS = """
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: fake, lastTransitionTime: {{ Now | Quote }}, lastHeartbeatTime: {{ Now | Quote }}}
"""

_RUNNING_STATUS = """
phase: Running
startTime: {{ Now | Quote }}
conditions:
{{ range list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
- {type: {{ . }}, status: "True", lastTransitionTime: {{ Now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true, restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
{{ if eq .restartPolicy "Always" }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true, restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}
{{ else }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, restartCount: 0, state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}}
{{ end }}
{{ end }}
{{ $addresses := PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index $addresses 0 | Quote }}
podIPs:
{{ range $addresses }}
- ip: {{ . | Quote }}
{{ end }}
"""

_ENDED_STATUS = """
{{ $annotations := or .metadata.annotations dict }}
{{ $started := .status.startTime }}
phase: PHASE
conditions:
{{ range list "ContainersReady" "Ready" }}
- {type: {{ . }}, status: "False", reason: ENDED, lastTransitionTime: {{ Now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, started: false, restartCount: 0, state: {terminated: {exitCode: CODE, reason: REASON, startedAt: {{ $started | Quote }}, finishedAt: {{ Now | Quote }}}}}
{{ end }}
"""


def document() -> str:
    """Return the configuration file for kwok."""
    succeeded = _ended("Succeeded", code="0", reason="Completed")
    failed = _ended(
        "Failed",
        code='{{ index $annotations "' + EXIT_CODE + '" }}',
        reason='{{ or ( index $annotations "' + REASON + '" ) "Error" }}',
    )
    ends = [_is(".status.phase", "Running"), _is(".metadata.ownerReferences.[].kind", "Job")]
    code = _ANNOTATION.format(EXIT_CODE)
    stages = [
        _stage("node-ready", "Node", [_is(_READY, "True", "NotIn")], {"statusTemplate": _NODE_STATUS}),
        _stage("pod-runs", "Pod", [_is(".status.phase", "Pending"), _alive()], {"statusTemplate": _RUNNING_STATUS}),
        _stage(
            "pod-succeeds", "Pod", [*ends, _alive(), {"key": code, "operator": "DoesNotExist"}], succeeded, waits=True
        ),
        _stage("pod-fails", "Pod", [*ends, _alive(), {"key": code, "operator": "Exists"}], failed, waits=True),
        _stage("pod-goes", "Pod", [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}], {"delete": True}),
    ]
    return yaml.safe_dump_all(stages)


def _ended(phase: str, *, code: str, reason: str) -> dict[str, Any]:
    text = _ENDED_STATUS.replace("PHASE", phase).replace("CODE", code).replace("REASON", reason)
    return {"statusTemplate": text.replace("ENDED", "PodCompleted" if phase == "Succeeded" else "PodFailed")}


def _alive() -> dict[str, Any]:
    return {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}


def _is(key: str, value: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [value]}


def _stage(
    name: str, kind: str, selector: list[dict[str, Any]], then: dict[str, Any], *, waits: bool = False
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": selector},
        "next": then,
    }
    if waits:
        spec["delay"] = {
            "durationMilliseconds": 0,
            "durationFrom": {"expressionFrom": _ANNOTATION.format(RUNS_FOR)},
        }
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}
