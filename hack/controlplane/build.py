"""Getting the assets of the control plane: programs from KUBEBUILDER_ASSETS, from the store, or by building them."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.problem import Problem, check_space, writing_to
from controlplane.product import PRODUCTS
from controlplane.store import VARIABLE, Store
from controlplane.toolchain import Toolchain

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from controlplane.product import Product

SPACE_FOR_PROGRAMS = 1_000_000_000
"""Bytes that the programs need in the store, with room for the one being built."""
SPACE_FOR_GO = 6_000_000_000
"""Bytes that Go's own caches grow by in a cold build."""
_PROGRESS_SECONDS = 10.0


@dataclass(frozen=True)
class Assets:
    """Where each program and each manifest of the control plane is."""

    programs: dict[str, Path]
    manifests: dict[str, dict[str, Path]]
    """Product → manifest → path."""


def ensure_assets(store: Store | None = None, products: Iterable[Product] = PRODUCTS) -> Assets:
    """Return all assets of the products, building only what is in neither KUBEBUILDER_ASSETS nor the store.

    Raises Problem, with nothing half done left behind, where a prerequisite is missing or a build fails.
    """
    store = store or Store.of_user()
    programs: dict[str, Path] = {}
    manifests: dict[str, dict[str, Path]] = {}
    missing: list[tuple[Product, list[str], list[str]]] = []
    for product in products:
        found = _programs_of(product, store)
        programs.update(found)
        manifests[product.name] = {name: store.path(product, name) for name in product.manifests}
        unbuilt = [name for name, path in found.items() if not path.exists()]
        uncopied = [name for name, path in manifests[product.name].items() if not path.exists()]
        if unbuilt or uncopied:
            missing.append((product, unbuilt, uncopied))
    if missing:
        _fill(store, missing)
    return Assets(programs, manifests)


def built_programs(store: Store | None = None, products: Iterable[Product] = PRODUCTS) -> dict[str, Path]:
    """Return the programs that are there already, and build nothing; raises Problem where there is none."""
    store = store or Store.of_user()
    found = {name: path for product in products for name, path in _programs_of(product, store).items()}
    built = {name: path for name, path in found.items() if path.exists()}
    if not built:
        raise Problem(f"nothing is built yet in {store.folder}: run `make controlplane`.")
    return built


def _programs_of(product: Product, store: Store) -> dict[str, Path]:
    return {name: _given(name) or store.path(product, name) for name in product.programs}


def _given(name: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(folder, name) if folder else None
    return path if path and os.access(path, os.X_OK) and path.is_file() else None


def _fill(store: Store, missing: list[tuple[Product, list[str], list[str]]]) -> None:
    toolchain = Toolchain.find()
    to_build = [name for _, unbuilt, _ in missing for name in unbuilt]
    if to_build:
        _say(f"building {len(to_build)} programs with {toolchain.version} into {store.folder}: {', '.join(to_build)}")
        _check_space(store, toolchain)
    for product, unbuilt, uncopied in missing:
        with store.filling(product) as scratch:
            _copy_manifests(store, product, uncopied, toolchain, scratch)
            for name in unbuilt:
                # Another process may have built it while this one waited for the folder.
                if not store.path(product, name).exists():
                    _build(store, product, name, toolchain, scratch)


def _check_space(store: Store, toolchain: Toolchain) -> None:
    check_space(store.folder, SPACE_FOR_PROGRAMS, VARIABLE)
    for folder in toolchain.folders():
        # With compiled packages there already, a build may do with much less.
        is_warm = folder.exists() and any(folder.iterdir())
        check_space(folder, SPACE_FOR_PROGRAMS if is_warm else SPACE_FOR_GO, "GOCACHE and GOMODCACHE")


def _copy_manifests(store: Store, product: Product, names: list[str], toolchain: Toolchain, scratch: Path) -> None:
    if not names:
        return
    _say(f"{product.name}: fetching its manifests")
    module = toolchain.download(product.module, product.folder)
    for name in names:
        with writing_to(store.folder, VARIABLE):
            # Not `copy`: files of the module cache are read-only, ours are ordinary.
            copied = Path(shutil.copyfile(module / product.manifests[name], scratch / name))
        store.finish(product, copied, name)


def _build(store: Store, product: Product, name: str, toolchain: Toolchain, scratch: Path) -> None:
    started = time.monotonic()
    with toolchain.start_build(product.programs[name], product.stamps, product.folder, scratch / name) as build:
        try:
            errors = _follow(build, name, started)
            status = build.wait()
        except BaseException:
            build.kill()
            raise
    if status:
        text = "\n".join(errors[-20:])
        if "no space left on device" in text:
            raise Problem(f"no space was left on the disk while building {name}: free some and run it again.")
        if "read-only file system" in text or "permission denied" in text:
            raise Problem(f"a folder could not be written while building {name}: {errors[-1]}")
        raise Problem(f"building {name} failed:\n{text}")
    size = (scratch / name).stat().st_size
    store.finish(product, scratch / name, name)
    _say(f"{name}: built in {time.monotonic() - started:.0f} s, {size / 1e6:.0f} MB")


def _follow(build: subprocess.Popen[str], name: str, started: float) -> list[str]:
    """Print progress until the build's output ends, and return the lines that are not progress."""
    downloaded = compiled = 0
    others: list[str] = []
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_PROGRESS_SECONDS):
            seconds = time.monotonic() - started
            _say(f"{name}: {downloaded} modules fetched, {compiled} packages compiled, {seconds:.0f} s")

    teller = threading.Thread(target=tell, name=f"progress of {name}", daemon=True)
    teller.start()
    try:
        for line in build.stderr or ():
            if line.startswith("go: downloading"):
                downloaded += 1
            elif " " in line.strip():
                others.append(line.rstrip())
            else:
                compiled += 1
    finally:
        ended.set()
        teller.join()
    return others


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
