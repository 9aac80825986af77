"""What kubectl makes of the overlays in docs/operations.md; no cluster is needed for that."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployment.kubectl import Kubectl
from support.manifests import CONFIG, Object, find
from support.realcluster import programs

NAME = "kubeflow-trainer-controller-manager"
TEXT = (CONFIG.parent / "docs/operations.md").read_text()
BASE = "github.com/example/ktrainer/config"


def overlay_with(key: str) -> Object:
    """The one overlay in the document that has this key."""
    overlays = [yaml.safe_load(each) for each in re.findall(r"(?s)```yaml\n(.*?)```", TEXT) if BASE in each]
    (overlay,) = [each for each in overlays if key in each]
    return dict(overlay)


def build(folder: Path, overlay: Object) -> list[Object]:
    """What an overlay installs, over the folders of this checkout."""
    here = os.path.relpath(CONFIG, folder.resolve())
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay).replace(BASE, here))
    kubectl = Kubectl(programs().programs["kubectl"], folder / "kubeconfig")
    return [each for each in yaml.load_all(kubectl("kustomize", str(folder)), yaml.CSafeLoader) if each]


def values_in(value: Any) -> list[str]:
    """All texts in a document."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in values_in(each)]
    if isinstance(value, list):
        return [text for each in value for text in values_in(each)]
    return [value] if isinstance(value, str) else []


def test_a_configuration_of_ones_own_should_replace_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "controller_manager_config.yaml").write_text("mine")
    built = build(tmp_path, overlay_with("configMapGenerator"))
    assert find(built, "ConfigMap", "kubeflow-trainer-config")["data"] == {"controller_manager_config.yaml": "mine"}
    (volume,) = find(built, "Deployment", NAME)["spec"]["template"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == "kubeflow-trainer-config"


def test_a_configuration_of_ones_own_should_follow_into_another_namespace(tmp_path: Path) -> None:
    (tmp_path / "controller_manager_config.yaml").write_text("mine")
    built = build(tmp_path, {**overlay_with("configMapGenerator"), "namespace": "kubeflow"})
    config = find(built, "ConfigMap", "kubeflow-trainer-config")
    assert config["data"] == {"controller_manager_config.yaml": "mine"}
    assert config["metadata"]["namespace"] == "kubeflow"


@pytest.mark.parametrize("components", [[], [f"{BASE}/webhook-apart"]], ids=["default", "webhook-apart"])
def test_everything_should_follow_into_another_namespace(tmp_path: Path, components: list[str]) -> None:
    built = build(tmp_path, {**overlay_with("namespace"), "components": components})
    assert [each for each in built if "kubeflow-system" in values_in(each)] == []
    assert [each for each in built if each["kind"] == "Namespace"] == []
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert [each["namespace"] for each in find(built, kind, NAME)["subjects"]] == ["kubeflow"]
    hooks = [hook for each in built for hook in each.get("webhooks", ())]
    assert len(hooks) == 4
    assert {hook["clientConfig"]["service"]["namespace"] for hook in hooks} == {"kubeflow"}


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ([], "ktrainer:0.1.0"),
        ([{"name": "ktrainer", "newName": "registry.example/ktrainer"}], "registry.example/ktrainer:0.1.0"),
        ([{"name": "ktrainer", "digest": "sha256:" + 64 * "a"}], "ktrainer@sha256:" + 64 * "a"),
    ],
    ids=["shipped", "own-registry", "own-digest"],
)
def test_all_replicas_should_be_of_one_image(tmp_path: Path, images: list[Object], expected: str) -> None:
    built = build(
        tmp_path,
        {"resources": [f"{BASE}/default"], "components": [f"{BASE}/webhook-apart"], "images": images},
    )
    pods = [each["spec"]["template"]["spec"] for each in built if each["kind"] == "Deployment"]
    assert [container["image"] for pod in pods for container in pod["containers"]] == [expected, expected]
