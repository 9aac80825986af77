from pathlib import Path

import pytest
import yaml

import gen_rbac
from ktrainer.kube.access import Access
from ktrainer.kube.identity import Resource

PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)


def test_the_committed_file_should_be_current() -> None:
    assert gen_rbac.main(["--check"]) == 0


def test_the_check_should_notice_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_rbac, "FILE", tmp_path / "role.yaml")
    monkeypatch.setattr(gen_rbac, "collect", lambda: [Access(PODS, ("get",))])
    assert gen_rbac.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert gen_rbac.main([]) == 0
    assert gen_rbac.main(["--check"]) == 0
    cluster, own = yaml.safe_load_all((tmp_path / "role.yaml").read_text())
    assert (cluster["kind"], own["kind"]) == ("ClusterRole", "Role")
    assert cluster["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def test_what_several_modules_ask_for_should_be_one_rule() -> None:
    declared = [
        Access(PODS, ("list", "get")),
        Access(JOBS, ("get",)),
        Access(NODES, ("get", "list")),
        Access(PODS, ("get",)),
        Access(JOBS, ("patch",), subresource="status"),
    ]
    assert gen_rbac.build_rules(declared) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
        {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["patch"]},
    ]


def test_what_is_allowed_for_all_should_not_be_repeated_for_some() -> None:
    declared = [Access(PODS, ("get", "update"), names=("b", "a")), Access(PODS, ("get",))]
    assert gen_rbac.build_rules(declared) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"], "verbs": ["update"]},
    ]


def test_the_managers_own_namespace_should_have_a_role_of_its_own() -> None:
    cluster, own = gen_rbac.build_roles([Access(PODS, ("get",)), Access(JOBS, ("get",), is_own=True)])
    assert [rule["resources"] for rule in cluster["rules"]] == [["pods"]]
    assert [rule["resources"] for rule in own["rules"]] == [["jobs"]]
    assert own["metadata"]["namespace"] == "kubeflow-system"
