from pathlib import Path

import yaml

from deployment.overlay import CONFIG, build_overlay, write_overlay
from support.manifests import objects_of

CONFIGURATION = {
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "judge"},
    "webhooks": [
        {"name": "a", "clientConfig": {"service": {"path": "/a"}}},
        {"name": "b", "clientConfig": {"service": {"path": "/b"}}},
    ],
}


def test_every_webhook_should_be_called_at_the_url() -> None:
    overlay = build_overlay(["../config/default"], [CONFIGURATION], "https://127.0.0.1:1")
    assert overlay["resources"] == ["../config/default"]
    (patch,) = overlay["patches"]
    assert patch["target"] == {"kind": "ValidatingWebhookConfiguration", "name": "judge"}
    assert yaml.safe_load(patch["patch"]) == [
        {"op": "remove", "path": "/webhooks/0/clientConfig/service"},
        {"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://127.0.0.1:1/a"},
        {"op": "remove", "path": "/webhooks/1/clientConfig/service"},
        {"op": "add", "path": "/webhooks/1/clientConfig/url", "value": "https://127.0.0.1:1/b"},
    ]


def test_an_overlay_should_lead_to_the_shipped_folders_and_patch_all_shipped_webhooks(tmp_path: Path) -> None:
    folder = write_overlay(tmp_path / "deep" / "overlay", ["crd", "default"], "https://127.0.0.1:1")
    overlay = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert [(folder / base).resolve() for base in overlay["resources"]] == [CONFIG / "crd", CONFIG / "default"]
    shipped = {each["metadata"]["name"] for each in objects_of(CONFIG / "webhook")}
    assert {each["target"]["name"] for each in overlay["patches"]} == shipped
