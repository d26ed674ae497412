"""Owners see MCP servers on the site, decide there what may be used, and come back there from a login."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from mcp_talk import LOGIN, browsed, connected, http_process, port_of, tool, write_tools
from mcp_talk import stdio_server as stdio
from waiting import until
from web_rig import open_web

from bot.mcp_client import McpServer
from bot.mcp_client.rights import DECISIONS

HTML = {"Accept": "text/html"}
WHERE = {"server": "files", "tool": "echo"}


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    said = {"text": {"type": "string", "description": "What <i>to</i> say"}}
    echo = tool("echo", "Says <b>it</b> again.", properties=said, required=["text"])
    write_tools(folder, echo, tool("change"))
    write_tools(folder, tool("echo", "Sends it away."), tool("change"), file="tools-next.json")
    return folder


@pytest.fixture
async def rig(tmp_path, files):
    async with open_web(folder=tmp_path / "home", mcp={"files": stdio(files)}) as rig:
        await connected(rig.host)
        yield rig


async def press(rig, command):
    """Give a command as a page's button does; return the answer's text."""
    given = {"session": "web:local", "text": command}
    answer = await rig.client.post("/api/v1/commands", json=given)
    assert answer.status_code == 200, answer.text
    return answer.json()["text"]


async def buttons(rig):
    """Return the commands of a tool's page."""
    return re.findall(r'data-command="([^"]+)"', await rig.page("/tools/tool", **WHERE))


async def test_an_owner_sees_servers_and_tools_and_gives_and_takes_rights_by_buttons(rig):
    assert '<a href="/tools"' in await rig.page("/tools")
    assert "Says &lt;b&gt;it&lt;/b&gt; again." in await rig.page("/tools/server", server="files")
    page = await rig.page("/tools/tool", **WHERE)
    assert "What &lt;i&gt;to&lt;/i&gt; say" in page
    found = await rig.get("/mcp/tool", **WHERE)
    assert [one["name"] for one in found["arguments"]] == ["text"]
    assert {one.split()[4] for one in await buttons(rig)} == set(DECISIONS)
    [everybody] = [one for one in await buttons(rig) if " ask everybody " in one]
    assert (await press(rig, everybody)).startswith("Allowed: after a yes to each call")
    [here] = [one for one in await buttons(rig) if " never chat:web:local " in one]
    await press(rig, here)
    await press(rig, "/mcp allow files echo once chat:telegram:42")
    rights = {one["scope"]: one for one in (await rig.get("/mcp"))["rights"]}
    assert {scope: one["decision"] for scope, one in rights.items()} == {
        "everybody": "ask",
        "chat:web:local": "never",
        "chat:telegram:42": "once",
    }
    assert rights["everybody"]["by"] == "web:local"
    assert "chat:telegram:42" in await rig.page("/tools")
    assert "after a yes to each call, for everybody" in await press(rig, "/mcp")


async def test_what_changed_is_shown_and_no_button_of_before_allows_it(rig):
    before = [one for one in await buttons(rig) if " always everybody " in one]
    await press(rig, before[0])
    await press(rig, "/mcp allow files change always everybody")
    change = rig.host.mcp.find("mcp_files_change")
    await rig.host.mcp.connections["files"].call(rig.host.mcp.definition("files", "change"), {})
    assert change is not None
    await until(lambda: "away" in rig.host.mcp.definition("files", "echo").description)
    page = await rig.page("/tools/tool", **WHERE)
    assert "What changed since you allowed it: <bdi>everybody</bdi>" in page
    assert "<del>" in page
    assert "changed `echo` since it was shown" in await press(rig, before[0])
    [right] = [one for one in (await rig.get("/mcp"))["rights"] if one["tool"] == "echo"]
    assert right["state"] == "suspended"
    [after] = [one for one in await buttons(rig) if " always everybody " in one]
    assert (await press(rig, after)).startswith(
        "Allowed: without asking for what is in your own words, for everybody"
    )


async def test_nobody_else_sees_or_decides(rig):
    for path in ("/tools", "/tools/server?server=files", "/tools/tool?server=files&tool=echo"):
        assert (await rig.member.get(path, headers=HTML)).status_code == 403
        assert (await rig.stranger.get(path, headers=HTML)).status_code == 303
        assert (await rig.member.get(f"/api/v1{path.replace('/tools', '/mcp')}")).status_code == 403
        assert (
            await rig.stranger.get(f"/api/v1{path.replace('/tools', '/mcp')}")
        ).status_code == 401
    given = {"session": "web:telegram.8", "text": "/mcp allow files echo always everybody"}
    answer = await rig.member.post("/api/v1/commands", json=given)
    assert "Only an owner" in answer.json()["text"]
    assert (await rig.get("/mcp"))["rights"] == []
    for path in ("/tools/server?server=none", "/tools/tool?server=files&tool=none"):
        assert (await rig.client.get(path, headers=HTML)).status_code == 404


@pytest.mark.slow
async def test_a_browser_comes_back_from_a_login_to_the_site(tmp_path, files):
    with http_process(files, script=LOGIN):
        url = f"http://127.0.0.1:{await port_of(files)}/mcp"
        async with open_web(folder=tmp_path / "home", mcp={"files": McpServer(url=url)}) as rig:
            await rig.host.mcp.connections["files"].wait_until_tried()
            assert "/mcp login files" in await rig.page("/tools")
            link = re.search(r"<(http\S+)>", await press(rig, "/mcp login files"))[1]
            back = urlsplit(await browsed(link))
            assert back.path == "/mcp/callback"
            address = f"{back.path}?{back.query}"
            assert (await rig.member.get(address, headers=HTML)).status_code == 403
            led = await rig.stranger.get(address, headers=HTML)
            assert led.headers["location"].startswith("/login?next=%2Fmcp%2Fcallback")
            wrong = await rig.page("/mcp/callback", code="a", state="b")
            assert "no login with this address is under way" in wrong
            assert "You are logged in at" in (await rig.client.get(address, headers=HTML)).text
            await connected(rig.host)
            again = (await rig.client.get(address, headers=HTML)).text
            assert "no login with this address is under way" in again
