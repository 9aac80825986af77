from pathlib import Path

import pytest
import yaml

import gen_webhooks


def test_the_committed_files_should_be_current() -> None:
    assert gen_webhooks.main(["--check"]) == 0


def test_the_check_should_notice_stale_and_foreign_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "config/webhook"
    monkeypatch.setattr(gen_webhooks, "FOLDER", folder)
    assert gen_webhooks.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert gen_webhooks.main([]) == 0
    assert gen_webhooks.main(["--check"]) == 0
    (folder / "old.yaml").write_text("")
    assert gen_webhooks.main(["--check"]) == 1
    assert gen_webhooks.main([]) == 0
    assert gen_webhooks.main(["--check"]) == 0


def test_the_kustomization_should_have_all_files() -> None:
    files = gen_webhooks.build_files()
    kustomization = yaml.safe_load(files["kustomization.yaml"])
    resources = kustomization["resources"]
    assert {*resources, *kustomization["configurations"], "kustomization.yaml"} == set(files)
    for name in resources:
        for webhook in yaml.safe_load(files[name])["webhooks"]:
            service = webhook["clientConfig"]["service"]
            assert (service["name"], service["namespace"]) == ("kubeflow-trainer-controller-manager", "kubeflow-system")


def test_kustomize_should_know_where_the_namespace_of_the_service_is() -> None:
    files = gen_webhooks.build_files()
    kustomization = yaml.safe_load(files["kustomization.yaml"])
    (settings,) = kustomization["configurations"]
    kinds = {yaml.safe_load(files[name])["kind"] for name in kustomization["resources"]}
    fields = yaml.safe_load(files[settings])["namespace"]
    assert {each["kind"] for each in fields} == kinds
    assert {each["path"] for each in fields} == {"webhooks/clientConfig/service/namespace"}
