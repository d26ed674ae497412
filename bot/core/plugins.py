"""Find and load plug-ins: what installed packages add to the program by entry points.

Rule 1: nothing is installed here, and no code of a package runs before its plug-in is loaded.
Rule 2: a plug-in that cannot be loaded is an error of this module, whatever its code raises.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from bot.core.errors import PluginUnavailable
from bot.core.reasons import Reason

PluginKind = Literal["tools", "channels", "models", "commands"]
"""What a plug-in adds; the entry point group is ``tapebot.`` and this."""

ALL = "all"
"""Instead of packages' names: every installed plug-in runs."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of an installed package.

    Attributes:
        kind: What it adds.
        name: The name of what it adds.
        package: The name of the package, as ``pip`` knows it.
        version: The package's version.
        entry_point: Where its object is.
    """

    kind: PluginKind
    name: str
    package: str
    version: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        """Return its name and its package, in English."""
        return str(self.label)

    def __format__(self, spec: str) -> str:
        """Return its name and its package, in the current language."""
        return format(self.label, spec)

    @property
    def label(self) -> Reason:
        """Its name and its package, as a part of a reason."""
        named = {"name": self.name, "package": self.package, "version": self.version}
        return Reason(f"plugin_{self.kind}", **named)

    def load(self) -> Any:
        """Import the package's module, and return the object.

        Raises:
            PluginUnavailable: It cannot be imported, or has no such object.
        """
        try:
            return self.entry_point.load()
        except (Exception, SystemExit) as error:
            # Isolates the program from code that it does not know.
            raise self.unavailable(raised("plugin_not_loaded", error)) from error

    def unavailable(self, reason: Reason) -> PluginUnavailable:
        """Return the error that says why it cannot be used, and what to do."""
        return PluginUnavailable(
            Reason("plugin_unavailable", plugin=self.label, reason=reason, package=self.package)
        )

    def failed(self, error: BaseException, code: str = "plugin_failed") -> Reason:
        """Return the reason that names it and the type of what its code raised."""
        return Reason(code, plugin=self.label, name=type(error).__name__)


def raised(code: str, error: BaseException) -> Reason:
    """Return a reason that names what a plug-in's code raised."""
    return Reason(code, name=type(error).__name__, error=str(error))


class Plugins:
    """The installed plug-ins, and those of them that may run.

    Args:
        allowed: Names of the packages whose plug-ins may run; ``all`` for every package.
    """

    def __init__(self, allowed: Collection[str] = (ALL,)) -> None:
        self._allowed = {_normalized(name) for name in allowed}

    @cached_property
    def installed(self) -> list[Plugin]:
        """All plug-ins, sorted; those that may not run, too."""
        found = entry_points()
        plugins = [
            Plugin(kind, point.name, point.dist.name, point.dist.version, point)
            for kind in get_args(PluginKind)
            for point in found.select(group=f"tapebot.{kind}")
            if point.dist is not None
        ]
        return sorted(plugins, key=lambda one: (one.kind, one.name, one.package))

    def is_allowed(self, plugin: Plugin) -> bool:
        """Return whether a plug-in may run."""
        return ALL in self._allowed or _normalized(plugin.package) in self._allowed

    def of(self, kind: PluginKind) -> list[Plugin]:
        """Return the plug-ins of a kind that may run."""
        return [one for one in self.installed if one.kind == kind and self.is_allowed(one)]

    def find(self, kind: PluginKind, name: str) -> Plugin | None:
        """Return the plug-in of a name that may run, the first if several packages have one."""
        return next((one for one in self.of(kind) if one.name == name), None)

    def missing(self) -> list[str]:
        """Return the allowed packages that have no plug-in here."""
        known = {_normalized(one.package) for one in self.installed}
        return sorted(self._allowed - known - {ALL, "off"})


def _normalized(package: str) -> str:
    """Return a package's name as indexes compare names."""
    return package.lower().replace("_", "-").replace(".", "-")
