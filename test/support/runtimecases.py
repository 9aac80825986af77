"""Cases of runtimes: every limit and rule of their schema, from both sides."""

from __future__ import annotations

from typing import Any

from ktrainer.api.resources import API_VERSION, CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from support.apiobjects import Case, Object, cluster_runtime, jobset, named, replicated_job, runtime


def _runtime(name: str, refused: str | None = None, /, *, deep: bool = False, **spec: Any) -> Case:
    return Case(name, TRAINING_RUNTIMES, runtime(**spec), refused, deep)


def _policy(name: str, refused: str | None = None, /, **policy: Any) -> Case:
    path = None if refused is None else f"spec.mlPolicy.{refused}" if refused else "spec.mlPolicy"
    return Case(name, TRAINING_RUNTIMES, runtime(mlPolicy=policy), path)


def _jobset(name: str, refused: str | None = None, /, **spec: Any) -> Case:
    path = None if refused is None else f"spec.template.spec.{refused}" if refused else "spec.template.spec"
    return Case(name, TRAINING_RUNTIMES, jobset(**spec), path, by_schema_only=True)


POLICIES = [
    _policy("without a policy"),
    *(_policy(f"with {policy}", numNodes=2, **{policy: {}}) for policy in ("torch", "mpi", "jax", "xgboost", "flux")),
    _policy("with two policies", "", torch={}, mpi={}),
    _policy("with two policies without fields", "", jax={}, xgboost={}),
    _policy("with no node", "numNodes", numNodes=0),
    _policy("with numNodes and bounds", "", numNodes=2, torch={"elasticPolicy": {}}),
    _policy("with bounds", torch={"elasticPolicy": {"minNodes": 1, "maxNodes": 4, "maxRestarts": 0}}),
    _policy("with equal bounds", torch={"elasticPolicy": {"minNodes": 4, "maxNodes": 4}}),
    _policy("with one bound", torch={"elasticPolicy": {"maxNodes": 4}}),
    _policy(
        "with bounds the wrong way", "torch.elasticPolicy", torch={"elasticPolicy": {"minNodes": 5, "maxNodes": 4}}
    ),
    _policy("with a lower bound of 0", "torch.elasticPolicy.minNodes", torch={"elasticPolicy": {"minNodes": 0}}),
    _policy("with an upper bound of 0", "torch.elasticPolicy.maxNodes", torch={"elasticPolicy": {"maxNodes": 0}}),
    _policy(
        "with fewer restarts than none", "torch.elasticPolicy.maxRestarts", torch={"elasticPolicy": {"maxRestarts": -1}}
    ),
    _policy(
        "with a metric",
        torch={
            "elasticPolicy": {
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ]
            }
        },
    ),
    _policy("with torch processes by number", torch={"numProcPerNode": 1}),
    _policy("with torch processes by a word", torch={"numProcPerNode": "auto"}),
    _policy("without torch processes", "torch.numProcPerNode", torch={"numProcPerNode": 0}),
    _policy("with torch processes by another word", "torch.numProcPerNode", torch={"numProcPerNode": "all"}),
    _policy("without mpi processes", "mpi.numProcPerNode", mpi={"numProcPerNode": 0}),
    *(
        _policy(f"with the MPI implementation {name or 'by default'}", mpi={"mpiImplementation": name})
        for name in ("OpenMPI", "OpenMPI5", "Intel", "MPICH", "")
    ),
    _policy("with an unknown MPI implementation", "mpi.mpiImplementation", mpi={"mpiImplementation": "LAM"}),
    _policy("with the longest mount path", mpi={"sshAuthMountPath": "/" * 4096}),
    _policy("with too long a mount path", "mpi.sshAuthMountPath", mpi={"sshAuthMountPath": "/" * 4097}),
    _policy("without flux processes", "flux.numProcPerNode", flux={"numProcPerNode": 0}),
]

_TARGETS = "torch.envInjection.targets"


def _injection(*targets: Object) -> Object:
    return {"envInjection": {"targets": list(targets)}}


def _target(job: str, *names: str) -> Object:
    return {"jobName": job, "containerNames": list(names)}


INJECTIONS = [
    _policy("with 16 targets", torch=_injection(*(_target(f"n{number}", "a") for number in range(16)))),
    _policy("with 17 targets", _TARGETS, torch=_injection(*(_target(f"n{number}", "a") for number in range(17)))),
    _policy("with a target twice", f"{_TARGETS}[1]", torch=_injection(_target("a", "a"), _target("a", "b"))),
    _policy("with a target without a job", f"{_TARGETS}[0].jobName", torch=_injection({"containerNames": ["a"]})),
    _policy("with a target without containers", f"{_TARGETS}[0].containerNames", torch=_injection(_target("a"))),
    _policy("with 8 containers", torch=_injection(_target("a", *"abcdefgh"))),
    _policy("with 9 containers", f"{_TARGETS}[0].containerNames", torch=_injection(_target("a", *"abcdefghi"))),
    _policy("with a container twice", f"{_TARGETS}[0].containerNames[1]", torch=_injection(_target("a", "b", "b"))),
    _policy("with the main container", f"{_TARGETS}[0].containerNames", torch=_injection(_target("a", "node"))),
    _policy("with the longest container name", torch=_injection(_target("a", "a" * 63))),
    _policy(
        "with too long a container name", f"{_TARGETS}[0].containerNames[0]", torch=_injection(_target("a", "a" * 64))
    ),
]

RUNTIMES = [
    Case(
        "without anything in its spec",
        TRAINING_RUNTIMES,
        {"apiVersion": API_VERSION, "kind": "TrainingRuntime", "metadata": {"name": "runtime"}, "spec": {}},
        "spec",
        by_schema_only=True,
    ),
    _runtime("without anything in its template", "spec.template", deep=True, template={}),
    _runtime("with template metadata", template={"metadata": {"labels": {"a": "b"}, "name": "x"}}),
    _runtime("with coscheduling", podGroupPolicy={"coscheduling": {}}),
    _runtime(
        "with volcano", podGroupPolicy={"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}}
    ),
    _runtime("with two gang schedulers", "spec.podGroupPolicy", podGroupPolicy={"coscheduling": {}, "volcano": {}}),
    _runtime(
        "with an unknown topology mode",
        "spec.podGroupPolicy.volcano.networkTopology.mode",
        podGroupPolicy={"volcano": {"networkTopology": {"mode": "firm"}}},
    ),
    _runtime("with a run policy", runPolicy={"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0}),
    _runtime(
        "with a deadline of no time", "spec.runPolicy.activeDeadlineSeconds", runPolicy={"activeDeadlineSeconds": 0}
    ),
    _runtime(
        "with a time to live below 0",
        "spec.runPolicy.ttlSecondsAfterFinished",
        runPolicy={"ttlSecondsAfterFinished": -1},
    ),
    Case(
        "for some namespaces",
        CLUSTER_TRAINING_RUNTIMES,
        cluster_runtime(allowedNamespaces={"matchLabels": {"team": "a"}}),
    ),
    Case(
        "with a bad selector",
        CLUSTER_TRAINING_RUNTIMES,
        cluster_runtime(allowedNamespaces={"matchExpressions": [{"key": "a"}]}),
        "spec.allowedNamespaces.matchExpressions[0].operator",
        by_schema_only=True,
    ),
    Case(
        "with a selector without a key",
        CLUSTER_TRAINING_RUNTIMES,
        cluster_runtime(allowedNamespaces={"matchExpressions": [{"operator": "Exists"}]}),
        "spec.allowedNamespaces.matchExpressions[0].key",
        by_schema_only=True,
    ),
]

_DEPENDENT = replicated_job("late", dependsOn=[{"name": "node", "status": "Complete"}])
JOBSETS = [
    _jobset("in order", startupPolicy={"startupPolicyOrder": "InOrder"}),
    _jobset("with a dependency", replicatedJobs=[replicated_job(), _DEPENDENT]),
    _jobset(
        "with a dependency in any order",
        startupPolicy={"startupPolicyOrder": "AnyOrder"},
        replicatedJobs=[replicated_job(), _DEPENDENT],
    ),
    _jobset(
        "with a dependency in order",
        "",
        startupPolicy={"startupPolicyOrder": "InOrder"},
        replicatedJobs=[replicated_job(), _DEPENDENT],
    ),
    _jobset("in an unknown order", "startupPolicy.startupPolicyOrder", startupPolicy={"startupPolicyOrder": "Random"}),
    _jobset("with 5 dependencies", replicatedJobs=[replicated_job(dependsOn=named(5, status="Ready"))]),
    _jobset(
        "with 6 dependencies",
        "replicatedJobs[0].dependsOn",
        replicatedJobs=[replicated_job(dependsOn=named(6, status="Ready"))],
    ),
    _jobset(
        "with a dependency twice",
        "replicatedJobs[0].dependsOn[1]",
        replicatedJobs=[replicated_job(dependsOn=[{"name": "a", "status": "Ready"}, {"name": "a", "status": "Ready"}])],
    ),
    _jobset(
        "with a dependency on an unknown state",
        "replicatedJobs[0].dependsOn[0].status",
        replicatedJobs=[replicated_job(dependsOn=[{"name": "a", "status": "Done"}])],
    ),
    _jobset(
        "with a dependency without a state",
        "replicatedJobs[0].dependsOn[0].status",
        replicatedJobs=[replicated_job(dependsOn=[{"name": "a"}])],
    ),
    _jobset("with a job twice", "replicatedJobs[1]", replicatedJobs=[replicated_job(), replicated_job()]),
    _jobset("with a job without a name", "replicatedJobs[0].name", replicatedJobs=[{"template": {}}]),
    _jobset(
        "with a dependency without a name",
        "replicatedJobs[0].dependsOn[0].name",
        replicatedJobs=[replicated_job(dependsOn=[{"status": "Ready"}])],
    ),
    _jobset("without a job template", "replicatedJobs[0].template", replicatedJobs=[{"name": "node"}]),
    _jobset("with an unknown success", "successPolicy.operator", successPolicy={"operator": "Most"}),
    _jobset("with all to succeed", successPolicy={"operator": "All", "targetReplicatedJobs": ["node"]}),
    _jobset(
        "with a failure policy",
        failurePolicy={"maxRestarts": 3, "rules": [{"name": "host", "action": "RestartJobSetAndIgnoreMaxRestarts"}]},
    ),
    _jobset("with an unknown restart", "failurePolicy.restartStrategy", failurePolicy={"restartStrategy": "Again"}),
    _jobset("with a JobSet's time to live below 0", "ttlSecondsAfterFinished", ttlSecondsAfterFinished=-1),
    _jobset("with a network", network={"enableDNSHostnames": True, "subdomain": "s", "publishNotReadyAddresses": True}),
    _jobset(
        "with an unknown action",
        "failurePolicy.rules[0].action",
        failurePolicy={"rules": [{"name": "a", "action": "Ignore"}]},
    ),
    _jobset(
        "with a rule without a name", "failurePolicy.rules[0].name", failurePolicy={"rules": [{"action": "RestartJob"}]}
    ),
    _jobset("with a coordinator of nothing", "coordinator.replicatedJob", coordinator={"jobIndex": 0}),
    _jobset("with a coordinator", coordinator={"replicatedJob": "node", "jobIndex": 0, "podIndex": 0}),
    _jobset(
        "with volume claims",
        volumeClaimPolicies=[
            {"templates": [{"metadata": {"name": "data"}}], "retentionPolicy": {"whenDeleted": "Retain"}}
        ],
    ),
    _jobset("with a volume claim policy without claims", volumeClaimPolicies=[{"retentionPolicy": {}}]),
    _jobset(
        "with a volume claim in a namespace",
        "volumeClaimPolicies[0]",
        volumeClaimPolicies=[{"templates": [{"metadata": {"name": "data", "namespace": "other"}}]}],
    ),
    _jobset(
        "with an unknown retention",
        "volumeClaimPolicies[0].retentionPolicy.whenDeleted",
        volumeClaimPolicies=[{"retentionPolicy": {"whenDeleted": "Forget"}}],
    ),
    _jobset("with 50 volume claims", volumeClaimPolicies=[{"templates": [{}] * 50}]),
    _jobset(
        "with 51 volume claims", "volumeClaimPolicies[0].templates", volumeClaimPolicies=[{"templates": [{}] * 51}]
    ),
    _jobset("with 50 volume claim policies", volumeClaimPolicies=[{}] * 50),
    _jobset("with 51 volume claim policies", "volumeClaimPolicies", volumeClaimPolicies=[{}] * 51),
]

RUNTIME_CASES = [*POLICIES, *INJECTIONS, *RUNTIMES, *JOBSETS]
