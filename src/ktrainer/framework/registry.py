"""Puts a Framework together from factories by name.

Plugins of other packages are entry points of the group `ktrainer.plugins`; each has to be switched on by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ktrainer.framework.errors import RegistryError
from ktrainer.framework.framework import Framework
from ktrainer.framework.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.observer import Observer

    Factory = Callable[[Dependencies], Plugin]
    Registry = Mapping[str, Factory]

ENTRY_POINTS: Final = "ktrainer.plugins"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which plugins there shall be, by name."""

    disabled: Sequence[str] = ()
    order: Sequence[str] = ()
    """The plugins that run first, in this order; the others follow in theirs."""
    external: Sequence[str] = ()
    """Plugins of other packages that are switched on."""
    gated: Sequence[str] = ()
    """Plugins that a closed gate keeps out; they may be named all the same."""


def build_framework(
    registry: Registry,
    dependencies: Dependencies,
    selection: Selection | None = None,
    observer: Observer | None = None,
) -> Framework:
    """Construct all plugins that are not disabled, in the wanted order, and those of other packages.

    Raises RegistryError for a name that no plugin has, for one that two have, and when the plugins do not make a
    framework.
    """
    selection = selection or Selection()
    factories = dict(registry)
    for name, factory in load_external(selection.external).items():
        if name in factories:
            raise RegistryError(f"plugins.external: there are two plugins named {name}")
        factories[name] = factory
    _check_names("disabled", selection.disabled, factories)
    _check_names("order", selection.order, factories)
    left_out = {*selection.disabled, *selection.gated}
    names = [name for name in _ordered(factories, selection.order) if name not in left_out]
    return Framework({name: _construct(name, factories[name], dependencies) for name in names}, observer)


def load_external(names: Iterable[str]) -> dict[str, Factory]:
    """Import the factories of plugins of other packages; raises RegistryError for those that cannot be had."""
    wanted = list(names)
    if not wanted:
        return {}
    # Looking through all installed packages takes long, and is needed here only.
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    factories: dict[str, Any] = {}
    for name in wanted:
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise RegistryError(
                f"plugins.external: no installed package has a plugin {name} ({ENTRY_POINTS}); there are: {known}"
            )
        try:
            factories[name] = found[name].load()
        except Exception as error:  # the boundary to code that is not ours
            raise RegistryError(f"plugin {name} cannot be imported: {error}") from error
    return factories


def _construct(name: str, factory: Factory, dependencies: Dependencies) -> Plugin:
    try:
        plugin: object = factory(dependencies)
    except Exception as error:  # the boundary to code that may not be ours
        raise RegistryError(f"plugin {name} cannot be constructed: {error}") from error
    if not isinstance(plugin, Plugin):
        raise RegistryError(f"plugin {name} is not a Plugin but a {type(plugin).__name__}")
    return plugin


def _ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    return [*first, *(name for name in names if name not in first)]


def _check_names(field: str, names: Iterable[str], factories: Mapping[str, Factory]) -> None:
    for name in names:
        if name not in factories:
            raise RegistryError(f"plugins.{field}: there is no plugin {name}; there are: {', '.join(factories)}")
