"""``tapebot doctor``: run all checks, and print what they find and what to do.

It writes nothing but a probe file in the home folder, removed at once. Models, platforms, MCP
servers, another machine's tapes and the search engine are called only with a probe, which may renew a
login at an MCP server; without one it says what was not called. It shows no secrets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread
from wcwidth import width

from bot.cli.check_result import CheckLevel, CheckResult, bad, ok
from bot.cli.machine_checks import (
    check_code,
    check_disk,
    check_home,
    check_plugins,
    check_python,
    check_terminal,
    check_time,
    check_workspace,
)
from bot.cli.service_checks import (
    check_access,
    check_channels,
    check_database,
    check_models,
    check_tapes,
)
from bot.cli.tool_checks import check_mcp, check_web_tools
from bot.core.errors import SettingsError
from bot.core.i18n import N_, _, ngettext
from bot.core.installation import this_installation
from bot.core.telemetry.redaction import Redactor
from bot.runtime.settings import Settings, export_dotenv, load_settings

Check = Callable[[Settings, bool], AsyncIterator[CheckResult]]
"""What yields its results, given the settings and whether it may call others."""


def _in_thread(check: Callable[[Settings], Iterator[CheckResult]]) -> Check:
    async def run(settings: Settings, _probe: bool) -> AsyncIterator[CheckResult]:
        for result in await anyio.to_thread.run_sync(lambda: list(check(settings))):
            yield result

    return run


CHECKS: tuple[tuple[str, Check], ...] = (
    (N_("home"), _in_thread(check_home)),
    (N_("tapes"), check_tapes),
    (N_("disk"), _in_thread(check_disk)),
    (N_("workspace"), _in_thread(check_workspace)),
    (N_("database"), check_database),
    (N_("model"), check_models),
    (N_("plug-ins"), _in_thread(check_plugins)),
    (N_("code"), _in_thread(check_code)),
    (N_("time"), _in_thread(check_time)),
    (N_("channels"), check_channels),
    (N_("access"), check_access),
    (N_("web tools"), check_web_tools),
    (N_("mcp"), check_mcp),
)
"""All checks with their names, in the order of the report."""

_SETTINGS, _PYTHON, _TERMINAL = N_("settings"), N_("python"), N_("terminal")
_LEVELS: dict[CheckLevel, str] = {"ok": N_("ok"), "warn": N_("warn"), "bad": N_("bad")}
_LEVEL_CELLS, _AREA_CELLS = 5, 11  # of a terminal, at least


async def run_checks(
    settings: Settings | SettingsError, *, probe: bool = False
) -> list[CheckResult]:
    """Check everything that can be checked from outside the running program.

    Args:
        settings: The settings, or what is wrong with them; then nothing else of them is checked.
        probe: Whether models, platforms and others may be called.
    """
    wrong = str(settings).splitlines() if isinstance(settings, SettingsError) else []
    lines = [bad(line, _("Correct it.")) for line in wrong] or [ok(_("all known and valid"))]
    found = [replace(line, area=_SETTINGS) for line in lines]
    found.append(replace(check_python(), area=_PYTHON))
    found.append(replace(check_terminal(), area=_TERMINAL))
    if isinstance(settings, SettingsError):
        return found
    for name, check in CHECKS:
        found += [replace(one, area=name) async for one in check(settings, probe)]
    redact = Redactor(settings.secrets())
    return [
        replace(
            one, text=redact(one.text), remedy=redact(one.remedy), uncalled=redact(one.uncalled)
        )
        for one in found
    ]


def report(results: Sequence[CheckResult]) -> str:
    """Format the results as text for a terminal, with a summary on the last line."""
    adapt = this_installation().adapt
    levels = [_(_LEVELS[each.level]) for each in results]
    areas = [_(each.area) for each in results]
    first = max([_LEVEL_CELLS, *(width(level) + 1 for level in levels)])
    second = max([_AREA_CELLS, *(width(area) + 1 for area in areas)])
    lines = []
    for each, level, area in zip(results, levels, areas, strict=True):
        lines.append(f"{_padded(level, first)}{_padded(area, second)}{adapt(each.text)}")
        if each.remedy:
            lines.append(f"{'':<{first + second}}-> {adapt(each.remedy)}")
    if uncalled := ", ".join(_uncalled(results)):
        lines.append(_("Not called without `--probe`: {names}.", names=uncalled))
    wrong = sum(each.level == "bad" for each in results)
    warnings = sum(each.level == "warn" for each in results)
    counted = ngettext("{n} warning", "{n} warnings", warnings) if warnings else _("no warnings")
    if wrong:
        last = ngettext("{n} bad, {warnings}.", "{n} bad, {warnings}.", wrong, warnings=counted)
    else:
        last = _("Nothing bad, {warnings}.", warnings=counted)
    return "\n".join([*lines, last])


def report_json(results: Sequence[CheckResult]) -> str:
    """Format the results as one JSON object."""
    names = ("area", "level", "text", "remedy")
    found = [{name: getattr(each, name) for name in names} for each in results]
    return json.dumps({"results": found, "not_called": _uncalled(results)})


def _uncalled(results: Sequence[CheckResult]) -> list[str]:
    return [each.uncalled for each in results if each.uncalled]


def _padded(text: str, cells: int) -> str:
    """Return a text with blanks up to a number of a terminal's cells."""
    return text + " " * (cells - width(text))


def exit_code(results: Sequence[CheckResult]) -> int:
    """Return 1 if any result is bad, else 0."""
    return int(any(each.level == "bad" for each in results))


def run_doctor(*, probe: bool, as_json: bool) -> int:
    """Print the results of all checks; return 1 if any is bad."""
    settings: Settings | SettingsError
    logging.getLogger().addHandler(logging.NullHandler())  # the report tells what libraries would
    try:
        export_dotenv()
        settings = load_settings()
    except SettingsError as error:
        settings = error
    except OSError as error:
        text = _("{file} cannot be read: {exc}", file=error.filename, exc=error.strerror)
        settings = SettingsError(text)
    results = anyio.run(partial(run_checks, settings, probe=probe))
    print(report_json(results) if as_json else report(results))
    return exit_code(results)
