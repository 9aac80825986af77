import base64

from ktrainer.api.gates import Gate
from ktrainer.app.documents import run_now
from ktrainer.app.training import build_training
from ktrainer.framework.registry import Selection
from ktrainer.plugins.registry import REGISTRY
from support.training import dependencies, runtime, trainjob

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "kubeflow-trainer-webhook-cert", "namespace": "kubeflow-system"},
    "data": {"ca.crt": base64.b64encode(b"certificate").decode()},
}


def test_progress_should_be_reported_only_where_the_gate_is_open() -> None:
    wanted = trainjob()
    given = dependencies(runtime(), SECRET)
    closed = build_training(given).of(wanted.spec.runtime_ref)
    assert closed.framework.names == tuple(name for name in REGISTRY if name != "trainjobstatus")
    opened = build_training(given, gates={Gate.TRAINJOB_STATUS}).of(wanted.spec.runtime_ref)
    assert opened.framework.names == tuple(REGISTRY)
    names = [component.name for component in run_now(opened.plan(wanted)).components]
    assert names == ["demo-runtime-snapshot", "demo-tls-config", "demo"]


def test_a_plugin_that_a_gate_keeps_out_may_be_named_all_the_same() -> None:
    selection = Selection(disabled=["trainjobstatus"], order=["trainjobstatus", *REGISTRY][:3])
    names = build_training(dependencies(), selection).of(trainjob().spec.runtime_ref).framework.names
    assert "trainjobstatus" not in names
    opened = build_training(dependencies(), Selection(order=["trainjobstatus"]), {Gate.TRAINJOB_STATUS})
    assert opened.of(trainjob().spec.runtime_ref).framework.names[0] == "trainjobstatus"


def test_the_selection_should_reach_the_framework() -> None:
    made = build_training(dependencies(), Selection(disabled=["volcano"], order=["jax"]))
    names = made.of(trainjob().spec.runtime_ref).framework.names
    assert names[0] == "jax"
    assert "volcano" not in names
