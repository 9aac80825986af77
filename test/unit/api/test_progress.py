import pytest

from ktrainer.api.progress import audience_of, key_of, status_path_of
from ktrainer.kube.identity import ObjectKey

PREFIX = "/apis/trainer.kubeflow.org/v1alpha1"


@pytest.mark.parametrize("key", [ObjectKey("team-a", "demo"), ObjectKey("a", "a.b-c.0"), ObjectKey("0", "x" * 63)])
def test_a_path_should_name_its_trainjob(key: ObjectKey) -> None:
    path = status_path_of(key)
    assert path == f"{PREFIX}/namespaces/{key.namespace}/trainjobs/{key.name}/status" == f"/apis/{audience_of(key)}"
    assert key_of(path) == key


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"{PREFIX}/namespaces/team-a/trainjobs/demo",
        f"{PREFIX}/namespaces/team-a/trainjobs/demo/status/",
        f"{PREFIX}/namespaces/team-a/trainjobs/demo/status\n",
        f"{PREFIX}/namespaces/team-a/trainjobs/../status",
        f"{PREFIX}/namespaces/team-a/trainjobs/a/b/status",
        f"{PREFIX}/namespaces/team-a/trainjobs/a%2Fb/status",
        f"{PREFIX}/namespaces/Team-A/trainjobs/demo/status",
        f"{PREFIX}/namespaces//trainjobs/demo/status",
        f"{PREFIX}/namespaces/team-a/trainjobs/demo./status",
        f"{PREFIX}/namespaces/{'x' * 64}/trainjobs/demo/status",
        "/apis/trainerxkubeflow.org/v1alpha1/namespaces/team-a/trainjobs/demo/status",
        f"//{PREFIX}/namespaces/team-a/trainjobs/demo/status",
    ],
)
def test_any_other_path_should_name_none(path: str) -> None:
    assert key_of(path) is None
