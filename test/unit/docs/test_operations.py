"""docs/operations.md names things that must exist under these names."""

import re
from pathlib import Path

import pytest

from ktrainer.api.gates import Gate
from ktrainer.api.trainjobstatus import Reason
from support.manifests import CONFIG, objects_of

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
TEXT = (DOCS / "operations.md").read_text()
HEADINGS = {
    re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"(?m)^#+ (.*)$", TEXT)
}
OF_RESOURCES = (
    Reason.APPLIED,
    Reason.VALIDATION_REJECTED,
    Reason.RUNTIME_NOT_FOUND,
    Reason.RUNTIME_SNAPSHOT_INVALID,
    Reason.APPLY_REFUSED,
    Reason.APPLY_FAILED,
)
CHECKS = {
    name
    for path in (ROOT / "src").rglob("*.py")
    for name in re.findall(r'(?:healthz|readyz)\.add\(\s*"([\w-]+)"', path.read_text())
}
OF_FAILURE = (Reason.TRAINING_RUNTIME_NOT_SUPPORTED, Reason.DEADLINE_EXCEEDED, Reason.JOBSET_DELETED)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)]+)\)", TEXT))))
def test_a_link_should_lead_somewhere(target: str) -> None:
    if target.startswith("#"):
        assert target[1:] in HEADINGS
    else:
        assert (DOCS / target).exists()


@pytest.mark.parametrize("folder", sorted(set(re.findall(r"-k (config/\w+)", TEXT))))
def test_a_folder_that_is_applied_should_be_a_kustomization(folder: str) -> None:
    assert (ROOT / folder / "kustomization.yaml").exists()


@pytest.mark.parametrize("file", sorted(set(re.findall(r"-f ([\w/.-]+\.yaml)", TEXT))))
def test_a_file_that_is_created_should_exist(file: str) -> None:
    assert (ROOT / file).exists()


@pytest.mark.parametrize("reason", [*OF_RESOURCES, *OF_FAILURE])
def test_every_reason_should_be_explained(reason: Reason) -> None:
    assert f"`{reason}`" in TEXT


def test_only_gates_that_exist_should_be_named() -> None:
    named = set(re.findall(r"gate `(\w+)`", TEXT))
    # One of them is JobSet's.
    assert named - {"ElasticJobSet"} == set(Gate)


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_every_check_of_health_should_be_explained(check: str) -> None:
    assert f"| `{check}` |" in TEXT


def test_the_checks_should_be_found() -> None:
    assert {"event-loop", "informers", "tasks", "lease", "stopping", "caches", "certificates", "webhooks"} <= CHECKS


def section(title: str) -> str:
    """What is said under a heading."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def deleted_in(text: str) -> set[tuple[str, str]]:
    """Kind, in lower case, and name of all that is deleted by name in the manager's namespace."""
    commands = re.findall(r"(?m)^\$ kubectl -n kubeflow-system delete (?:--ignore-not-found )?(\S+) (.*)$", text)
    return {(kind, name) for kinds, names in commands for kind in kinds.split(",") for name in names.split()}


def names_of(*folders: str) -> set[tuple[str, str]]:
    """The same of all that these folders install, but for the namespace."""
    objects = [each for folder in folders for each in objects_of(CONFIG / folder) if each["kind"] != "Namespace"]
    return {(each["kind"].lower(), each["metadata"]["name"]) for each in objects}


def test_nothing_should_be_left_where_the_namespace_stays() -> None:
    made = {("lease", "trainer.kubeflow.org"), ("secret", "kubeflow-trainer-webhook-cert")}
    assert deleted_in(section("Uninstall")) == names_of("manager", "webhook-apart") | made


def test_what_would_harm_the_original_should_be_deleted_before_it_comes_back() -> None:
    selecting = {"deployment", "networkpolicy", "poddisruptionbudget"}
    harmful = {each for each in names_of("manager", "webhook-apart") if each[0] in selecting}
    assert deleted_in(section("From the original, and back").partition("*Back:*")[2]) == harmful


def test_webhooks_that_nobody_answers_should_go_before_a_finalizer_does() -> None:
    last_resort = section("Uninstall").partition("by hand")[2]
    assert 0 < last_resort.index("delete --ignore-not-found -k config/webhook") < last_resort.index("finalizers")


def test_a_revocation_should_reach_every_webhook() -> None:
    (numbers,) = re.findall(r"for n in ([\d ]+);", TEXT)
    counts = {each["kind"]: len(each["webhooks"]) for each in objects_of(CONFIG / "webhook")}
    assert counts == {"MutatingWebhookConfiguration": 1, "ValidatingWebhookConfiguration": len(numbers.split())}
