"""What API servers are told of the webhook."""

from prometheus_client import CollectorRegistry

from ktrainer.app.admission import build_hooks
from ktrainer.app.training import build_training
from ktrainer.webhook.metrics import Denials
from ktrainer.webhook.registration import ENTRIES, build_configurations
from support.hookcases import FixedClock
from support.laggingcluster import Cluster

PATHS = {
    "validator.trainjob.trainer.kubeflow.org": "/validate-trainer-kubeflow-org-v1alpha1-trainjob",
    "validator.trainingruntime.trainer.kubeflow.org": "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime",
    "validator.clustertrainingruntime.trainer.kubeflow.org": (
        "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
    ),
    "defaulter.trainjob.trainer.kubeflow.org": "/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
}

VALIDATING, MUTATING = build_configurations("service", "namespace")
WEBHOOKS = [*VALIDATING["webhooks"], *MUTATING["webhooks"]]


def test_names_and_paths_should_be_those_that_others_rely_on() -> None:
    assert (VALIDATING["kind"], VALIDATING["metadata"]["name"]) == (
        "ValidatingWebhookConfiguration",
        "validator.trainer.kubeflow.org",
    )
    assert (MUTATING["kind"], MUTATING["metadata"]["name"]) == (
        "MutatingWebhookConfiguration",
        "defaulter.trainer.kubeflow.org",
    )
    assert {each["name"]: each["clientConfig"]["service"]["path"] for each in WEBHOOKS} == PATHS
    assert {entry.name: entry.path for entry in ENTRIES} == PATHS


def test_every_webhook_should_be_served() -> None:
    cluster = Cluster()
    hooks = build_hooks(build_training(cluster.dependencies), cluster, Denials(CollectorRegistry()), FixedClock())
    assert {hook.path: hook.is_mutating for hook in hooks} == {entry.path: entry.is_mutating for entry in ENTRIES}


def test_a_webhook_should_never_be_passed_over_nor_have_effects() -> None:
    for each in WEBHOOKS:
        terms = [each[key] for key in ("failurePolicy", "sideEffects", "matchPolicy", "timeoutSeconds")]
        assert terms == ["Fail", "None", "Equivalent", 10]
        assert each["admissionReviewVersions"] == ["v1"]
        assert "caBundle" not in each["clientConfig"]
        assert each["clientConfig"]["service"] | {"path": ""} == {
            "name": "service",
            "namespace": "namespace",
            "port": 443,
            "path": "",
        }


def test_writes_of_the_status_should_never_depend_on_the_webhook() -> None:
    asked = {each["name"]: [(rule["resources"], rule["operations"]) for rule in each["rules"]] for each in WEBHOOKS}
    both = ["CREATE", "UPDATE"]
    assert asked == {
        "validator.trainjob.trainer.kubeflow.org": [(["trainjobs"], both), (["trainjobs/scale"], ["UPDATE"])],
        "validator.trainingruntime.trainer.kubeflow.org": [(["trainingruntimes"], both)],
        "validator.clustertrainingruntime.trainer.kubeflow.org": [(["clustertrainingruntimes"], both)],
        "defaulter.trainjob.trainer.kubeflow.org": [(["trainjobs"], both)],
    }


def test_runtimes_should_have_a_label_to_avoid_the_webhook_with() -> None:
    key = "trainer.kubeflow.org/webhook-validation"
    selector = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["disabled"]}]}
    assert {each["name"]: each.get("objectSelector") for each in WEBHOOKS} == {
        "validator.trainjob.trainer.kubeflow.org": None,
        "validator.trainingruntime.trainer.kubeflow.org": selector,
        "validator.clustertrainingruntime.trainer.kubeflow.org": selector,
        "defaulter.trainjob.trainer.kubeflow.org": None,
    }
