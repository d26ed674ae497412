"""Who may do what: every route, every kind of token."""

from __future__ import annotations

import os
import stat

import anyio
import pytest
from tape_server_rig import TAPE, Rig, serving

from bot.core.errors import SettingsError
from bot.tape.entries import message
from bot.tape.server import connections
from bot.tape.server.tokens import SCOPES, TokenStore

OPEN = {"/health"}
NAMELESS = {"/v1/tapes", "/v1/search", "/v1/statistics"}
"""Routes that need no tape (making one does)."""

ENTRIES = {"entries": [{"kind": "event", "payload": {}}]}
TOMBSTONES = {"tombstones": [{"id": 2, "kind": "message", "payload": {}}]}
BODIES = {
    "/v1/tapes/entries": {"tape": TAPE, **ENTRIES},
    "/v1/tapes/erase": {"tape": TAPE, **TOMBSTONES},
    "/v1/tapes/fork": {"from_tape": TAPE, "new_tape": "telegram:43"},
    "/v1/tapes/anchors": {"tape": TAPE, "name": "here"},
    "/v1/search": {"query": {}},
}


@pytest.fixture
async def rig(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        await rig.store.append(TAPE, message("user", "hi"))
        await rig.store.create_tape("discord:1")
        yield rig


async def calls(rig: Rig):
    """Return method, path and scope of every route of the application, as its document declares them."""
    async with rig.client(None) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    routes = {(route.path, one) for route in rig.app.routes for one in route.methods - {"HEAD"}}
    found = [
        (method.upper(), path, operation["security"])
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]
    assert {(path, method) for method, path, _ in found} | {("/openapi.json", "GET")} == routes
    assert len(found) > 15
    return found


async def ask(rig: Rig, token: str | None, method: str, path: str, tape: str = TAPE):
    if method == "POST":
        body = BODIES.get(path, {"tape": TAPE})
        names = [name for name in ("tape", "from_tape") if name in body]
        asked = {"json": {**body, **dict.fromkeys(names, tape)}}
    else:
        given = {} if path in NAMELESS | OPEN else {"tape": tape}
        asked = {"params": given | ({"name": "here"} if "anchors/" in path else {})}
    async with rig.client(token) as client, client.stream(method, path, **asked) as answer:
        if path != "/v1/tapes/follow" or not answer.is_success:
            await answer.aread()
        return answer


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_route_takes_the_tokens_that_it_should_and_no_other(rig, every):
    tokens = {scope: rig.tokens.add(scope, scope, ["telegram:*"]) for scope in SCOPES}
    elsewhere = rig.tokens.add("elsewhere", "admin", ["discord:*", "telegram:?"])
    await rig.store.create_anchor(TAPE, "here")
    for method, path, security in (await calls(rig))[::every]:
        where = f"{method} {path}"
        if path in OPEN:
            assert (await ask(rig, None, method, path)).status_code == 200, where
            continue
        needed = security[0]["token"][0]
        for wrong in (None, "tape_wrong", "x", "ü" * 3):
            answer = await ask(rig, wrong, method, path)
            assert answer.status_code == 401, where
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"] == "no_token"
        for scope in SCOPES:
            answer = await ask(rig, tokens[scope], method, path)
            if SCOPES.index(scope) < SCOPES.index(needed):
                assert answer.status_code == 403, where
                assert answer.json()["error"] == "scope"
            else:
                # A fork can be made once.
                assert answer.status_code in (200, 409), (where, scope)
        if path not in NAMELESS:
            for tape in (TAPE, "telegram:nobody"):
                answer = await ask(rig, elsewhere, method, path, tape)
                assert answer.status_code == 403, where
                assert answer.json()["error"] == "tape"


async def test_a_search_is_of_the_tapes_that_the_token_sees(rig):
    await rig.store.append("discord:1", message("user", "tea at five"))
    await rig.store.append(TAPE, message("user", "tea at six"))
    token = rig.tokens.add("some", "read", ["discord:*"])
    async with rig.client(token) as client:
        for asked in ({}, {"tapes": ["discord:1", TAPE]}, {"tapes": ["discord:1"]}):
            answer = await client.post("/v1/search", json={"query": {"text": "tea", **asked}})
            assert [hit["tape"] for hit in answer.json()] == ["discord:1"]
        answer = await client.post("/v1/search", json={"query": {"text": "tea", "tapes": [TAPE]}})
        assert answer.json() == []
        for tape in (TAPE, "telegram:nobody"):
            by_anchor = {"tapes": [tape], "after_anchor": "here"}
            assert (await client.post("/v1/search", json={"query": by_anchor})).status_code == 403


async def test_a_stream_ends_before_the_next_entry_once_its_token_was_taken_back(rig):
    token = rig.tokens.add("some", "read", ["telegram:*"])
    params = {"tape": TAPE, "after": 1}
    async with rig.client(token) as client:
        async with client.stream("GET", "/v1/tapes/follow", params=params) as stream:
            lines = stream.aiter_lines()
            while "hi" not in await anext(lines):
                pass
            rig.tokens.add("another", "read", ["*"])
            await rig.store.append(TAPE, message("user", "still"))
            while "still" not in await anext(lines):
                pass
            rig.tokens.remove("some")
            await rig.store.append(TAPE, message("user", "private"))
            assert [line async for line in lines if line] == []
        assert (await client.get("/v1/tapes/follow", params=params)).status_code == 401


async def test_a_silent_stream_ends_once_its_token_was_taken_back(rig, monkeypatch):
    monkeypatch.setattr(connections, "_KEEP_ALIVE", 0.02)
    token = rig.tokens.add("some", "read", ["telegram:*"])
    async with (
        rig.client(token) as client,
        client.stream("GET", "/v1/tapes/follow", params={"tape": TAPE}) as stream,
    ):
        lines = stream.aiter_lines()
        with anyio.fail_after(10):
            while await anext(lines) != ":":
                pass
            rig.tokens.remove("some")
            async for _ in lines:
                pass


def test_a_token_is_kept_as_its_hash_in_a_private_file(tmp_path):
    path = tmp_path / "deep" / "tokens.json"
    token = TokenStore(path).add("bot", "append", ["telegram:*", "🍳*"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    assert len(token) >= 43
    grant = TokenStore(path).find(token)
    assert (grant.name, grant.scope, grant.tapes) == ("bot", "append", ("telegram:*", "🍳*"))
    assert TokenStore(path).find(token[:-1]) is None
    assert TokenStore(path).find("") is None


def test_a_damaged_file_of_tokens_allows_nothing_and_is_told(tmp_path, caplog):
    path = tmp_path / "tokens.json"
    book = TokenStore(path)
    token = book.add("bot", "read", ["*"])
    for damage in ("{", "[1]", '[{"name":"a","scope":"root","tapes":["*"],"sha256":"x"}]'):
        path.write_text(damage)
        os.utime(path, ns=(0, len(damage)))
        assert book.find(token) is None
        with pytest.raises(SettingsError, match="not a valid token file"):
            book.list()
    assert "no token is valid" in caplog.text
