"""The objects of a kustomization as they stand in its files, without kustomize: names and content, no labels added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CONFIG = Path(__file__).parents[2] / "config"

Object = dict[str, Any]


def kustomization_of(folder: Path) -> Object:
    """The kustomization of a folder."""
    value: Object = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return value


def files_of(folder: Path) -> list[Path]:
    """The files that a folder's kustomization installs; those of other folders aside."""
    return [path for path in _listed(folder) if not path.is_dir()]


def objects_of(folder: Path) -> list[Object]:
    """All objects that a folder's kustomization installs, those of other folders too."""
    found: list[Object] = []
    for path in _listed(folder):
        if path.is_dir():
            found += objects_of(path)
        else:
            found += [each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each]
    for generator in kustomization_of(folder).get("configMapGenerator", ()):
        data = {name: (folder / name).read_text() for name in generator["files"]}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data})
    return found


def find(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of that kind and name."""
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def _listed(folder: Path) -> list[Path]:
    return [(folder / name).resolve() for name in kustomization_of(folder)["resources"]]
