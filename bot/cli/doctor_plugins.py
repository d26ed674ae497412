"""Checks of ``tapebot doctor`` on plug-ins: which are installed, and whether each can be used."""

from __future__ import annotations

from collections.abc import Iterator

from bot.cli.check_result import CheckResult
from bot.core.i18n import _
from bot.core.plugins import Plugins
from bot.runtime.settings import Settings


def check_installed_plugins(settings: Settings) -> Iterator[CheckResult]:
    """List the installed plug-ins; those that may run are loaded to see whether they can be used."""
    plugins = Plugins(settings.plugins)
    for package in plugins.missing():
        remedy = _("Install {package}, or correct TAPEBOT_PLUGINS.", package=package)
        yield CheckResult("plug-ins", "warn", _("{package} has none here", package=package), remedy)
    if not plugins.installed:
        return
    from bot.runtime.app.plugins import check_plugins

    for plugin, problem in check_plugins(plugins):
        if problem:
            text, _semicolon, remedy = problem.removeprefix("plug-in: ").rpartition("; ")
            yield CheckResult("plug-ins", "warn", text, f"{remedy[:1].upper()}{remedy[1:]}.")
        elif plugins.is_allowed(plugin):
            yield CheckResult("plug-ins", "ok", str(plugin))
        else:
            yield CheckResult(
                "plug-ins", "ok", _("{plugin}: switched off by TAPEBOT_PLUGINS", plugin=plugin)
            )
