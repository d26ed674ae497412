"""The doctor says which MCP servers are there, and whether the web can be searched."""

from __future__ import annotations

import json
import sys

import pytest
from mcp_talk import LOGIN, SCRIPT, http_process, port_of, tool, write_tools
from odd_server import odd_server, reply

from bot.cli.doctor_mcp import check_mcp
from bot.cli.doctor_web_tools import check_web_tools
from bot.mcp_client import McpServer
from bot.runtime.settings import load_settings


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def told(results):
    return {each.text: (each.level, each.remedy) for each in results}


async def test_each_server_is_connected_to_only_when_that_is_asked_for(tmp_path):
    files = tmp_path / "files"
    write_tools(files, tool("echo"), tool("other"))
    program = {"command": sys.executable, "args": [str(SCRIPT), str(files)]}
    with http_process(tmp_path / "files", script=LOGIN):
        locked = f"http://127.0.0.1:{await port_of(files)}/mcp"
        settings = load_settings(
            mcp={
                "files": McpServer(**program),
                "locked": McpServer(url=locked),
                "missing": McpServer(command="no-such-program"),
                "wrong": McpServer(command=sys.executable, args=("-c", "")),
            }
        )
        quiet = told(await check_mcp(settings, ask=False))
        assert f"files runs {sys.executable} (`doctor --probe` connects)" in quiet
        assert "missing: there is no program no-such-program" in quiet
        assert not (files / "pid").exists()
        found = told(await check_mcp(settings, ask=True))
    assert found["files: connected, 2 tools"] == ("ok", "")
    [(level, remedy)] = [found[text] for text in found if text.startswith("locked is not there")]
    assert (level, remedy) == ("warn", "Send `/mcp login locked` in a private chat.")
    assert len([text for text in found if "is not there: it" in text]) == 3
    assert await check_mcp(load_settings(), ask=True) == []


async def test_the_search_engine_is_asked_only_when_that_is_asked_for():
    async with odd_server() as server:
        url = f"http://127.0.0.1:{server.port}"
        hit = {"url": "https://a.example", "title": "A", "content": "a"}
        found = json.dumps({"results": [hit]})
        server.answers["/search?q=weather&format=json"] = reply(found, "application/json")
        settings = load_settings(web_search="searxng", web_search_url=url)
        quiet = told(await check_web_tools(settings, ask=False))
        assert "searxng (`doctor --probe` searches once)" in quiet
        assert server.requests == []
        assert told(await check_web_tools(settings, ask=True))["searxng: it answers"][0] == "ok"
    [failed, _] = await check_web_tools(settings, ask=True)
    assert (failed.level, "the search failed" in failed.text) == ("warn", True)
    [wrong] = await check_web_tools(load_settings(web_search="brave"), ask=False)
    assert (wrong.level, "needs your key" in wrong.text) == ("bad", True)
    off = told(await check_web_tools(load_settings(web_search="off", web_fetch="off"), ask=True))
    assert set(off) == {"models do not search the web", "models read no pages"}
