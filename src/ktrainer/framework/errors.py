"""What can go wrong in the framework.

    FrameworkError
    ├── RegistryError     the plugins cannot be put together: the manager does not start
    └── PluginError       a plugin failed, and the message names it

`EnvConflict` is raised while a plugin runs, and therefore comes out as the cause of a PluginError.
"""

from __future__ import annotations


class FrameworkError(Exception):
    """The base of all errors of this package."""


class RegistryError(FrameworkError):
    """The registered plugins do not make a framework."""


class PluginError(FrameworkError):
    """A plugin failed at an extension point; its own error is the cause."""

    def __init__(self, plugin: str, point: str, reason: object) -> None:
        super().__init__(f"plugin {plugin}: {point}: {reason}")
        self.plugin = plugin


class EnvConflict(Exception):
    """Two plugins set a variable of one container to different values; a PluginError carries this outside."""
