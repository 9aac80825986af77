from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.framework.component import Write
from ktrainer.framework.info import Info
from ktrainer.plugins.flux import names
from ktrainer.plugins.flux.plugin import Flux
from support.training import container, dependencies, errors_of, findings_of, info_of, job, runtime, trainjob
from support.validity import assert_valid

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-flux-curve", "namespace": "team-a"}}


def flux(*jobs: dict[str, Any], template: Any = None, nodes: int = 2, **policy: Any) -> dict[str, Any]:
    return runtime(*jobs, template=template, mlPolicy={"numNodes": nodes, "flux": policy})


def enforced(value: dict[str, Any], wanted: TrainJob | None = None) -> Info:
    wanted = wanted or trainjob(trainer={})
    info = info_of(value, wanted)
    Flux(dependencies()).enforce_ml_policy(info, wanted)
    return info


def scripts(value: dict[str, Any], wanted: TrainJob | None = None) -> dict[str, str]:
    wanted = wanted or trainjob()
    config_map, _ = run_now(Flux(dependencies()).build(enforced(value, wanted), wanted))
    data: dict[str, str] = config_map.body["data"]
    return data


def test_flux_should_be_installed_in_the_pods() -> None:
    pods = enforced(flux(job("node", "trainer", container(), pod={"initContainers": [container("pre")]}))).pod_sets[0]
    assert [each.name for each in pods.init_containers] == ["pre", "flux-installer"]
    assert pods.init_containers[1].spec == {
        "name": "flux-installer",
        "image": "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
        "command": ["/bin/bash", "/etc/flux-config/init.sh"],
        "volumeMounts": [
            {"name": "flux-install", "mountPath": "/mnt/flux"},
            {"name": "demo-flux-entrypoint", "mountPath": "/etc/flux-config", "readOnly": True},
        ],
    }
    assert pods.pod_spec["volumes"] == [
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": "demo-flux-entrypoint", "configMap": {"name": "demo-flux-entrypoint", "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": "demo-flux-curve", "defaultMode": 0o400}},
    ]
    assert pods.containers[0].mounts == [
        {"name": "flux-install", "mountPath": "/mnt/flux"},
        {"name": "spack-install", "mountPath": "/opt/software"},
        {"name": "demo-flux-entrypoint", "mountPath": "/etc/flux-config", "readOnly": True},
        {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
        {"name": "shared-memory", "mountPath": names.MEMORY_PATH, "readOnly": True},
    ]


@pytest.mark.parametrize(
    ("of_runtime", "trainer", "program"),
    [
        ({"command": ["rt", "cmd"], "args": ["rtarg"]}, {}, "rt cmd"),
        ({"command": ["rt", "cmd"]}, {"args": ["a", "b"]}, "rt cmd a b"),
        ({"command": ["rt", "cmd"]}, {"command": ["mine"], "args": ["a"]}, "mine a"),
        ({"command": ["rt", "cmd"]}, {"command": [], "args": ["a"]}, "a"),
        ({}, {}, ""),
    ],
)
def test_the_program_should_be_wrapped(of_runtime: Any, trainer: Any, program: str) -> None:
    info = enforced(flux(job("node", "trainer", container(**of_runtime))), trainjob(trainer=trainer))
    assert info.command == ["/bin/bash", "/etc/flux-config/entrypoint.sh", program]
    assert info.args is None


def test_settings_should_come_from_the_environment_the_users_first() -> None:
    env = [{"name": "FLUX_VIEW_IMAGE", "value": "v:1"}, {"name": "FLUX_QUEUE_POLICY", "value": "easy"}]
    mine = [{"name": "FLUX_QUEUE_POLICY", "value": "hybrid"}, {"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}]
    value, wanted = flux(job("node", "trainer", container(env=env))), trainjob(trainer={"env": mine})
    assert enforced(value, wanted).pod_sets[0].init_containers[0].spec["image"] == "v:1"
    script = scripts(value, wanted)["init.sh"]
    assert 'queue-policy = "hybrid"' in script
    assert "tcp://ib0:%p" in script


@pytest.mark.parametrize("setting", [{"value": ""}, {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
def test_a_setting_without_a_value_should_leave_the_runtimes(setting: dict[str, Any]) -> None:
    value = flux(job("node", "trainer", container(env=[{"name": "FLUX_VIEW_IMAGE", "value": "v:1"}])))
    wanted = trainjob(trainer={"env": [{"name": "FLUX_VIEW_IMAGE", **setting}]})
    assert enforced(value, wanted).pod_sets[0].init_containers[0].spec["image"] == "v:1"


def test_without_a_number_in_the_trainjob_the_runtimes_should_be_taken() -> None:
    assert "-N 3 -n 6" in scripts(flux(nodes=3, numProcPerNode=2), trainjob())["entrypoint.sh"]


def test_the_trainjobs_processes_should_go_before_the_runtimes() -> None:
    script = scripts(flux(numProcPerNode=2), trainjob(trainer={"numProcPerNode": 5}))["entrypoint.sh"]
    assert "-N 2 -n 10" in script


def test_hosts_should_be_known_by_job_name_and_subdomain() -> None:
    made = scripts(flux(job("worker"), template={"network": {"subdomain": "sub"}}))
    assert "= 'demo-worker-0-0'" in made["entrypoint.sh"]
    assert "tcp://%h.sub.team-a.svc:%p" in made["init.sh"]


def test_the_key_should_be_made_once_and_kept() -> None:
    config_map, secret = run_now(Flux(dependencies()).build(enforced(flux()), trainjob()))
    assert (config_map.write, secret.write) == (Write.APPLY, Write.CREATE)
    certificate = secret.body["stringData"]["curve.cert"]
    assert 'metadata\n    name = "demo"\ncurve\n    public-key = "<generated>"\n    secret-key = ' in certificate
    assert_valid(config_map.body)
    assert_valid(secret.body)
    again = run_now(Flux(dependencies(secret.body)).build(enforced(flux()), trainjob()))
    assert [component.body["kind"] for component in again] == ["ConfigMap"]


def test_scripts_of_the_original_should_stay_with_the_pods_that_run_by_them() -> None:
    config_map, secret = run_now(Flux(dependencies()).build(enforced(flux()), trainjob()))
    ours = {**config_map.body, "data": {"init.sh": "old"}}
    labelless = {key: value for key, value in ours["metadata"].items() if key != "labels"}
    theirs = {**ours, "metadata": labelless}
    foreign = {**theirs, "metadata": {key: labelless[key] for key in ("name", "namespace")}}

    def built(present: dict[str, Any], *, suspend: bool = False) -> list[str]:
        plugin = Flux(dependencies(secret.body, present))
        return [each.name for each in run_now(plugin.build(enforced(flux()), trainjob(suspend=suspend)))]

    assert built(theirs) == []
    for present, suspend in ((theirs, True), (ours, False), (foreign, False)):
        assert built(present, suspend=suspend) == [config_map.name]


def test_a_key_of_somebody_else_should_not_be_taken_for_ours() -> None:
    _, secret = run_now(Flux(dependencies(SECRET)).build(enforced(flux()), trainjob()))
    assert (secret.name, secret.write) == ("demo-flux-curve", Write.CREATE), "creating it will tell of the other one"


def test_other_runtimes_should_be_left_alone() -> None:
    wanted = trainjob(trainer={"numProcPerNode": "auto"})
    for value in (runtime(), runtime(mlPolicy={"jax": {}}), flux(job("aux", None))):
        info = enforced(value, wanted)
        assert info.pod_sets[0].init_containers == []
        assert info.command is None
        assert run_now(Flux(dependencies()).build(info, wanted)) == []
    assert findings_of(Flux(dependencies()), info_of(), wanted).errors == []


def test_the_trainers_job_should_do_whatever_its_name() -> None:
    aside, trainers = enforced(flux(job("node", None), job("worker"))).pod_sets
    assert aside.init_containers == []
    assert trainers.init_container("flux-installer") is not None


def test_a_job_named_node_should_do_where_no_job_is_the_trainers() -> None:
    assert enforced(flux(job("node", None))).pod_sets[0].init_container("flux-installer") is not None


def test_the_name_of_the_installer_should_be_reserved() -> None:
    value = flux(job("node", "trainer", container(), pod={"initContainers": [container("flux-installer")]}))
    findings = findings_of(Flux(dependencies()), info_of(value), trainjob())
    assert errors_of(findings) == [("INVALID", "spec.trainer.initContainers")]


def test_a_word_should_be_refused_as_a_number_of_processes() -> None:
    wanted = trainjob(trainer={"numProcPerNode": "gpu"})
    findings = findings_of(Flux(dependencies()), info_of(flux(), wanted), wanted)
    assert errors_of(findings) == [("INVALID", "spec.trainer.numProcPerNode")]


def test_our_own_objects_should_be_watched() -> None:
    assert [(watch.resource.plural, watch.labelled) for watch in Flux(dependencies()).watches()] == [
        ("configmaps", True),
        ("secrets", True),
    ]
