"""Which web tools a model is offered, and what is said where a setting or a library is missing."""

from __future__ import annotations

import sys

import pytest

from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import SettingsError
from bot.runtime.app import web_tools
from bot.runtime.app.web_tools import make_web_tools
from bot.runtime.settings import load_settings
from bot.testing.manual_clock import ManualClock


@pytest.fixture
def offered(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def names(**settings) -> list[str]:
        blobs = FolderBlobs(tmp_path / "blobs")
        tools = make_web_tools(load_settings(**settings), blobs, ManualClock())
        assert all(tool.effect == "reads_world" for tool in tools)
        return [tool.name for tool in tools]

    return names


@pytest.fixture
def without_libraries(monkeypatch):
    monkeypatch.setattr(web_tools, "find_spec", lambda _: None)


def test_with_the_libraries_both_tools_are_offered_and_load_nothing_yet(offered):
    before = set(sys.modules)
    assert offered() == ["web.search", "web.fetch"]
    assert not {"ddgs", "trafilatura", "lxml", "bot.core.fetch.fetcher"} & (
        set(sys.modules) - before
    )


def test_each_is_offered_only_where_the_owner_allows_it(offered):
    assert offered(web_search="off") == ["web.fetch"]
    assert offered(web_search="off", web_fetch="OFF") == []
    assert offered(web_search="searxng", web_search_url="http://127.0.0.1:8888") == [
        "web.search",
        "web.fetch",
    ]
    assert offered(web_search="Brave", web_search_key="k", web_fetch="off") == ["web.search"]


@pytest.mark.usefixtures("without_libraries")
def test_without_the_libraries_nothing_is_offered_unless_it_is_asked_for(offered):
    assert offered() == []
    with pytest.raises(SettingsError, match=r"TAPEBOT_WEB_SEARCH: needs ddgs: pip install 'tapeb"):
        offered(web_search="ddgs")
    with pytest.raises(SettingsError, match=r"needs httpx, trafilatura: pip install 'tapebot\[web"):
        offered(web_fetch="on")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"web_search": "searxng"}, "TAPEBOT_WEB_SEARCH_URL: searxng needs your server's address"),
        ({"web_search": "tavily"}, "TAPEBOT_WEB_SEARCH_KEY: tavily needs your key"),
        ({"web_search": "askjeeves"}, "TAPEBOT_WEB_SEARCH"),
        ({"web_search_url": "ftp://a"}, "TAPEBOT_WEB_SEARCH_URL"),
        ({"web_fetch_ports": "80,x"}, "TAPEBOT_WEB_FETCH_PORTS"),
        ({"web_fetch_ports": "70000"}, "TAPEBOT_WEB_FETCH_PORTS"),
    ],
)
def test_a_setting_that_cannot_work_is_named(offered, settings, why):
    with pytest.raises(SettingsError) as caught:
        offered(**settings)
    assert why in str(caught.value)


def test_ports_are_given_as_a_list(offered):
    del offered
    assert load_settings(web_fetch_ports="80, 8080").web_fetch_ports == (80, 8080)
