"""Checks of ``tapebot doctor`` on plug-ins: which are installed, and whether each can be used."""

from __future__ import annotations

from collections.abc import Iterator

from bot.cli.check_result import CheckResult
from bot.core.i18n import _
from bot.core.plugins import Plugins
from bot.core.reasons import Reason
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
            text, remedy = _told(problem)
            yield CheckResult("plug-ins", "warn", text, remedy)
        elif plugins.is_allowed(plugin):
            yield CheckResult("plug-ins", "ok", f"{plugin}")
        else:
            yield CheckResult(
                "plug-ins", "ok", _("{plugin}: switched off by TAPEBOT_PLUGINS", plugin=plugin)
            )


def _told(problem: str) -> tuple[str, str]:
    """Return what is wrong with a plug-in, and what to do."""
    if not isinstance(problem, Reason) or problem.code != "plugin_unavailable":
        return f"{problem}", ""
    text = "{plugin} {reason}".format_map(problem.values)
    remedy = f"{problem}".partition(text)[2].strip(" ;；؛。")
    if not remedy.startswith(problem.values["package"]):
        remedy = remedy[:1].upper() + remedy[1:]
    return text, f"{remedy}."
