"""A kustomize overlay of config/: the same objects, with webhooks that are called at a port of loopback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

CONFIG = Path(__file__).parents[2] / "config"

Object = dict[str, Any]


def write_overlay(folder: Path, parts: Iterable[str], url: str) -> Path:
    """Write an overlay of folders of config/ and return its folder; `url` is where the webhooks are."""
    folder.mkdir(parents=True, exist_ok=True)
    bases = [os.path.relpath(CONFIG / part, folder.resolve()) for part in parts]
    configurations = [each for path in sorted((CONFIG / "webhook").glob("*.yaml")) for each in _documents(path)]
    document = build_overlay(bases, configurations, url)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return folder


def build_overlay(bases: list[str], configurations: Iterable[Object], url: str) -> Object:
    """Build the kustomization over other kustomizations, with a patch for each webhook configuration."""
    patches = [
        {
            "target": {"kind": each["kind"], "name": each["metadata"]["name"]},
            "patch": yaml.safe_dump(_operations(each["webhooks"], url)),
        }
        for each in configurations
        if "webhooks" in each
    ]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": bases,
        "patches": patches,
    }


def _operations(webhooks: list[Object], url: str) -> list[Object]:
    operations: list[Object] = []
    for index, webhook in enumerate(webhooks):
        path, call = f"/webhooks/{index}/clientConfig", webhook["clientConfig"]
        operations.append({"op": "remove", "path": f"{path}/service"})
        operations.append({"op": "add", "path": f"{path}/url", "value": f"{url}{call['service']['path']}"})
    return operations


def _documents(path: Path) -> Iterable[Object]:
    return (each for each in yaml.safe_load_all(path.read_text()) if each)
