"""Checks of ``tapebot doctor`` on the web as a source: what is offered, and whether the engine answers."""

from __future__ import annotations

from bot.agent.web.search_engines import SearchEngine
from bot.cli.check_result import CheckResult
from bot.core.errors import FetchFailed, SettingsError
from bot.core.i18n import N_, _
from bot.runtime.app.web_tools import reads_pages, search_engine
from bot.runtime.settings import Settings

_QUERY = "weather"
_REMEDY = N_("Correct it, or switch it off: TAPEBOT_WEB_SEARCH=off, TAPEBOT_WEB_FETCH=off.")
_AREA = "web tools"  # for programs


async def check_web_tools(settings: Settings, *, ask: bool) -> list[CheckResult]:
    """Check search and reading pages."""
    try:
        engine, reads = search_engine(settings), reads_pages(settings)
    except SettingsError as error:
        return [CheckResult(_AREA, "bad", str(error), _(_REMEDY))]
    pages = CheckResult(
        _AREA, "ok", _("models may read pages") if reads else _("models read no pages")
    )
    if engine is None:
        return [CheckResult(_AREA, "ok", _("models do not search the web")), pages]
    name = settings.web_search or "ddgs"
    if not ask:
        return [
            CheckResult(_AREA, "ok", _("{name} (`doctor --probe` searches once)", name=name)),
            pages,
        ]
    return [await _search(name, engine), pages]


async def _search(name: str, engine: SearchEngine) -> CheckResult:
    try:
        hits = await engine.search(_QUERY, 1)
    except FetchFailed as error:
        return CheckResult(
            _AREA, "warn", _("{name}: the search failed: {error}", name=name, error=error)
        )
    if not hits:
        return CheckResult(_AREA, "warn", _("{name}: it answers, and finds nothing", name=name))
    return CheckResult(_AREA, "ok", _("{name}: it answers", name=name))
