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
    resources = yaml.safe_load(files["kustomization.yaml"])["resources"]
    assert {*resources, "kustomization.yaml"} == set(files)
    for name in resources:
        for webhook in yaml.safe_load(files[name])["webhooks"]:
            service = webhook["clientConfig"]["service"]
            assert (service["name"], service["namespace"]) == ("kubeflow-trainer-controller-manager", "kubeflow-system")
