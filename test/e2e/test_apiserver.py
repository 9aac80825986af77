from contextlib import closing
from pathlib import Path

import pytest
import yaml

from clusters.api import Api, Refused
from clusters.folder import Folder
from controlplane.product import KUBERNETES


def test_the_api_server_should_tell_the_version_it_is_built_from(cluster: Folder, admin: Api) -> None:
    version = admin.get("/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == (KUBERNETES, "1", "36")


def test_a_service_account_token_should_be_an_identity(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    admin.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = admin.create(f"{accounts}/robot/token", request)["status"]["token"]

    document = yaml.safe_load(cluster.kubeconfig("admin").read_text())
    document["users"][0]["user"] = {"token": token}
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(document))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with closing(Api(tmp_path / "robot.yaml")) as robot:
        answer = robot.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        with pytest.raises(Refused, match="403"):
            robot.get(f"/api/v1/namespaces/{namespace}/pods")
    assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"


@pytest.mark.parametrize(
    "path",
    [
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    ],
)
def test_the_foreign_kinds_should_be_served(admin: Api, path: str) -> None:
    assert admin.get(path)["items"] is not None
