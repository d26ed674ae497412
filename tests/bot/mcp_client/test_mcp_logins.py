"""An owner logs in at a server in a browser; nobody else can finish it, and no token leaves its store."""

from __future__ import annotations

import json
import logging
import stat

import pytest
from mcp_talk import (
    LOGIN,
    ask,
    browsed,
    connected,
    http_process,
    link_of,
    obeying,
    port_of,
    tool,
    write_tools,
)

from bot.core.database.connections import Database
from bot.mcp_client import McpOAuth, McpServer
from bot.mcp_client.postgres_login_store import PostgresLoginStore
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel


@pytest.fixture
async def files(tmp_path):
    """A server that demands a login, in its folder."""
    folder = tmp_path / "files"
    write_tools(folder, tool("echo"), tool("repeat"))
    with http_process(folder, script=LOGIN):
        await port_of(folder)
        yield folder


def rules(folder, **given):
    (folder / "rules.json").write_text(json.dumps(given))


def asked(folder):
    """Return the requests that the authorization server got."""
    path = folder / "asked.txt"
    return path.read_text().splitlines() if path.exists() else []


def tokens(folder):
    path = folder / "tokens.txt"
    return path.read_text().split() if path.exists() else []


def expire(tmp_path):
    """Let the access token that is kept be one of long ago."""
    kept = tmp_path / "home" / "mcp" / "files.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"expires_at": 5.0}))


def home(tmp_path, files, *, url=None, **more):
    address = url or f"http://127.0.0.1:{(files / 'port').read_text()}/mcp"
    servers = {"files": McpServer(url=address, **more)}
    return session_host(tmp_path / "home", ScriptedModel(obeying), mcp=servers)


async def tried(host):
    await host.mcp.connections["files"].wait_until_tried()


async def logged_in(host):
    told = await ask(host, f"/mcp login files {await browsed(await link_of(host))}")
    assert told.startswith("You are logged in at `files`"), told
    await connected(host)


@pytest.mark.slow
async def test_an_owner_logs_in_once_and_no_token_is_said_logged_or_on_a_tape(
    tmp_path, files, caplog
):
    caplog.set_level(logging.DEBUG)
    async with home(tmp_path, files) as host:
        await tried(host)
        assert "needs a login: /mcp login files" in await ask(host, "/mcp")
        assert not [line for line in asked(files) if "POST" in line]
        await logged_in(host)
        await ask(host, "/mcp allow files repeat reads")
        assert "[redacted]" in await ask(host, "use mcp_files_repeat")
        kept = tmp_path / "home" / "mcp" / "files.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert all(one in kept.read_text() for one in tokens(files))
        said = "\n".join(one.text for one in host.channel.answers)
        written = "\n".join(str(entry) for entry in await host.tape())
    async with home(tmp_path, files) as host:
        await connected(host)
        assert len([line for line in asked(files) if line == "POST /token"]) == 1
    assert tokens(files)
    for one in tokens(files):
        assert one not in said + written + caplog.text


async def test_only_an_owner_in_a_private_chat_may_log_in(tmp_path, files):
    async with home(tmp_path, files) as host:
        for given in ({"private": False}, {"role": "member"}):
            sent = await host.channel.send("/mcp login files", **given)
            assert "http" not in await host.channel.wait_for_answer(sent)
        assert asked(files) == []


@pytest.mark.slow
async def test_an_address_finishes_its_own_login_and_that_once(tmp_path, files):
    async with home(tmp_path, files) as host:
        link = await link_of(host)
        for other in ("", "nonsense", "http://x/?code=a&state=b", "http://x/?code=a", link[:40]):
            told = await ask(host, f"/mcp login files {other or '?'}")
            assert "no login with this address is under way" in told
        address = await browsed(link)
        assert "are logged in" in await ask(host, f"/mcp login files {address}")
        assert "under way" in await ask(host, f"/mcp login files {address}")
        assert len(tokens(files)) == 2
        earlier, _ = await link_of(host), await link_of(host)
        address = await browsed(earlier)
        assert "under way" in await ask(host, f"/mcp login files {address}")
        assert len(tokens(files)) == 2


@pytest.mark.slow
async def test_a_login_that_is_refused_says_so_and_changes_nothing(tmp_path, files):
    async with home(tmp_path, files) as host:
        rules(files, refuse=True)
        address = await browsed(await link_of(host))
        told = await ask(host, f"/mcp login files {address}")
        assert "refused it (access_denied)" in told
        rules(files, iss="http://127.0.0.1:9")
        address = await browsed(await link_of(host))
        told = await ask(host, f"/mcp login files {address}")
        assert "Authorization response iss mismatch" in told
        assert "POST /token" not in asked(files)
        assert "needs a login" in await ask(host, "/mcp")
        assert not (tmp_path / "home" / "mcp").exists()


@pytest.mark.slow
async def test_a_server_leads_nobody_to_an_authorization_server_that_the_owner_did_not_name(
    tmp_path, files
):
    other = tmp_path / "other"
    write_tools(other)
    with http_process(other, script=LOGIN):
        issuer = f"http://127.0.0.1:{await port_of(other)}"
        rules(files, issuer=issuer)
        async with home(tmp_path, files) as host:
            told = await ask(host, "/mcp login files")
            assert f'issuer = "{issuer}"' in told
            assert "authorize" not in told
            assert asked(other) == []
        async with home(tmp_path, files, oauth=McpOAuth(issuer=issuer, browser=True)) as host:
            assert (await link_of(host)).startswith(f"{issuer}/authorize")
        rules(files, authorize=f"{issuer}/authorize")
        async with home(tmp_path, files) as host:
            told = await ask(host, "/mcp login files")
            assert f"it wants a login at {issuer}/authorize" in told
            assert "?" not in told
        rules(files, issuer=issuer)
        mixed = McpOAuth(issuer=f"{issuer}/else", browser=True)
        async with home(tmp_path, files, oauth=mixed) as host:
            assert "authorize" not in await ask(host, "/mcp login files")


@pytest.mark.slow
async def test_an_expired_login_is_renewed_and_one_that_cannot_be_needs_a_person(tmp_path, files):
    async with home(tmp_path, files) as host:
        await logged_in(host)
        await ask(host, "/mcp allow files echo reads")
    expire(tmp_path)
    async with home(tmp_path, files) as host:
        await connected(host)
        assert "echo: " in await ask(host, "use mcp_files_echo")
        assert len(tokens(files)) == 4
    expire(tmp_path)
    rules(files, refuse=True)
    async with home(tmp_path, files) as host:
        await tried(host)
        assert "needs a login: /mcp login files" in await ask(host, "/mcp")
        assert "echo: " not in await ask(host, "use mcp_files_echo")
        rules(files)
        await logged_in(host)
        assert "echo: " in await ask(host, "use mcp_files_echo")


@pytest.mark.slow
async def test_a_login_is_for_its_address_alone(tmp_path, files):
    async with home(tmp_path, files) as host:
        await logged_in(host)
    other = tmp_path / "other"
    write_tools(other)
    with http_process(other, script=LOGIN):
        url = f"http://127.0.0.1:{await port_of(other)}/mcp"
        async with home(tmp_path, files, url=url) as host:
            await tried(host)
            assert "needs a login" in await ask(host, "/mcp")


@pytest.mark.slow
async def test_a_login_that_one_process_keeps_is_found_by_the_others(url):
    one, other = Database(url), Database(url)
    try:
        for database in (one, other):
            await database.open()
        kept, read = PostgresLoginStore(one), PostgresLoginStore(other)
        assert await read.read("files") is None
        for login in ('{"tokens": {"access_token": "é"}}', "{}"):
            await kept.write("files", login)
            assert await read.read("files") == login
    finally:
        for database in (one, other):
            await database.close()
