"""Build the tools that search the web and read pages, as the owner allows them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from bot.agent.tools.registry import Tool
from bot.agent.tools.web import Fetch, web_tools
from bot.agent.web.search_engines import DdgsEngine, SearchEngine, brave, searxng, tavily
from bot.bus.media.blobs import Blobs
from bot.core.clock import Clock
from bot.core.errors import SettingsError
from bot.core.fetch.fetched_file import FetchedFile
from bot.core.i18n import _
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    from bot.core.fetch.fetcher import Fetcher

_FETCH_NEEDS = ("httpx", "trafilatura")


def make_web_tools(settings: Settings, blobs: Blobs, clock: Clock) -> list[Tool[Any]]:
    """Return the web tools that the settings allow; none that a missing library would break.

    Raises:
        SettingsError: A setting asks for what is not installed, or lacks an address or a key.
    """
    return web_tools(search_engine(settings), _fetch(settings), blobs, clock)


def search_engine(settings: Settings) -> SearchEngine | None:
    """Return the engine that the settings name; None for no search.

    Raises:
        SettingsError: It is not installed, or lacks an address or a key.
    """
    name, url, key = settings.web_search, settings.web_search_url, settings.web_search_key
    if name is None:
        return DdgsEngine() if not _missing("ddgs") else None
    if name == "off":
        return None
    if name == "ddgs":
        _need("TAPEBOT_WEB_SEARCH", "ddgs")
        return DdgsEngine()
    _need("TAPEBOT_WEB_SEARCH", "httpx")
    if name == "searxng":
        if url is None:
            raise SettingsError(_("TAPEBOT_WEB_SEARCH_URL: searxng needs your server's address"))
        return searxng(url)
    if key is None:
        raise SettingsError(_("TAPEBOT_WEB_SEARCH_KEY: {name} needs your key", name=name))
    return (brave if name == "brave" else tavily)(key.get_secret_value(), url)


def reads_pages(settings: Settings) -> bool:
    """Say whether pages may be read.

    Raises:
        SettingsError: They should be, and a library is missing.
    """
    if settings.web_fetch == "off" or (settings.web_fetch is None and _missing(*_FETCH_NEEDS)):
        return False
    _need("TAPEBOT_WEB_FETCH", *_FETCH_NEEDS)
    return True


def _fetch(settings: Settings) -> Fetch | None:
    if not reads_pages(settings):
        return None
    made: list[Fetcher] = []

    async def fetch(url: str, accepts: Callable[[str], bool]) -> FetchedFile:
        if not made:
            # With the first page: whoever reads none pays nothing.
            made.append(await anyio.to_thread.run_sync(_make_fetcher, settings))
        return await made[0].fetch(url, accepts)

    return fetch


def _make_fetcher(settings: Settings) -> Fetcher:
    from bot.core.fetch.fetcher import Fetcher

    return Fetcher(ports=settings.web_fetch_ports)


def _missing(*packages: str) -> list[str]:
    return [package for package in packages if find_spec(package) is None]


def _need(setting: str, *packages: str) -> None:
    if missing := _missing(*packages):
        raise SettingsError(
            _(
                "{setting}: needs {missing}: pip install 'tapebot[web-tools]'",
                setting=setting,
                missing=", ".join(missing),
            )
        )
