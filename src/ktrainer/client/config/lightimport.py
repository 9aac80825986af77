"""Imports single modules of kubernetes_asyncio without the rest of it.

Its packages import some 900 generated modules by themselves, 35 MB and a third of a second for a few lines of code. So
empty packages stand in for them while the module is imported, and are gone afterwards: an ordinary import that comes
later finds nothing unusual.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_ROOT = "kubernetes_asyncio"


def import_light(*names: str) -> tuple[ModuleType, ...]:
    """Import modules of kubernetes_asyncio, together so that they see each other; in full where this fails."""
    if _ROOT in sys.modules:
        return _import_all(names)
    spec = importlib.util.find_spec(_ROOT)
    if spec is None or not spec.submodule_search_locations:
        return _import_all(names)
    folder = Path(spec.submodule_search_locations[0])
    for package in (_ROOT, f"{_ROOT}.config", f"{_ROOT}.client"):
        stand_in = ModuleType(package)
        stand_in.__path__ = [str(folder.joinpath(*package.split(".")[1:]))]
        sys.modules[package] = stand_in
    # Named in signatures by the modules that we import; we never use them.
    vars(sys.modules[f"{_ROOT}.client"]).update(ApiClient=object, Configuration=object)
    try:
        return _import_all(names)
    except ImportError:
        _forget()
        return _import_all(names)
    finally:
        _forget()


def _import_all(names: tuple[str, ...]) -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module(name) for name in names)


def _forget() -> None:
    for name in [name for name in sys.modules if name == _ROOT or name.startswith(f"{_ROOT}.")]:
        del sys.modules[name]
