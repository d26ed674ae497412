"""Who may do what: every route, every kind of token."""

from __future__ import annotations

import os
import stat

import pytest
from fastapi.routing import APIRoute
from tape_server_rig import TAPE, Rig, serving

from bot.core.errors import SettingsError
from bot.tape.entries import message
from bot.tape.http_protocol import NDJSON_MEDIA_TYPE
from bot.tape.server.api import AUTH_SCHEME
from bot.tape.server.tokens import SCOPES, TokenStore

OPEN = {"/health"}
NAMELESS = {"/v1/tapes", "/v1/search", "/v1/statistics"}
"""Routes that need no tape (making one does)."""

BODIES = {
    "/v1/tapes": (b"{}", "application/json"),
    "/v1/tapes/entries": (b'{"kind":"event","payload":{}}\n', NDJSON_MEDIA_TYPE),
    "/v1/tapes/erase": (b'{"id":2,"kind":"message","payload":{},"meta":{}}\n', NDJSON_MEDIA_TYPE),
    "/v1/tapes/fork": (b'{"new_tape":"telegram:43"}', "application/json"),
    "/v1/tapes/anchors": (b'{"name":"here"}', "application/json"),
    "/v1/search": (b"{}", "application/json"),
}


@pytest.fixture
async def rig(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        await rig.store.append(TAPE, message("user", "hi"))
        await rig.store.create_tape("discord:1")
        yield rig


def routes(rig: Rig):
    """Yield method, path and declared scopes of every route of the application."""
    found = [route for route in rig.app.routes if isinstance(route, APIRoute)]
    assert len(found) > 15
    for route in found:
        security = (route.openapi_extra or {}).get("security", "none declared")
        for method in route.methods:
            yield method, route.path, security


async def ask(rig: Rig, token: str | None, method: str, path: str, tape: str = TAPE):
    body, kind = BODIES.get(path, (b"", NDJSON_MEDIA_TYPE))
    asked = {"tape": tape} if path not in NAMELESS or method == "POST" else {}
    asked |= {"name": "here"} if path.startswith("/v1/tapes/anchors/") else {}
    async with (
        rig.client(token) as client,
        client.stream(
            method,
            path,
            params=asked,
            content=body if method == "POST" else None,
            headers={"Content-Type": kind},
        ) as answer,
    ):
        if path != "/v1/tapes/follow" or not answer.is_success:
            await answer.aread()
        return answer


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_route_takes_the_tokens_that_it_should_and_no_other(rig, every):
    tokens = {scope: rig.tokens.add(scope, scope, ["telegram:*"]) for scope in SCOPES}
    elsewhere = rig.tokens.add("elsewhere", "admin", ["discord:*", "telegram:?"])
    await rig.store.create_anchor(TAPE, "here")
    for method, path, security in [*routes(rig)][::every]:
        where = f"{method} {path}"
        if path in OPEN:
            assert (await ask(rig, None, method, path)).status_code == 200, where
            continue
        needed = security[0][AUTH_SCHEME][0]
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
                assert answer.status_code in (200, 201, 409), (where, scope)
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
            answer = await client.post("/v1/search", json={"text": "tea", **asked})
            assert [hit["tape"] for hit in answer.json()["hits"]] == ["discord:1"]
        answer = await client.post("/v1/search", json={"text": "tea", "tapes": [TAPE]})
        assert answer.json() == {"hits": []}
        for tape in (TAPE, "telegram:nobody"):
            by_anchor = {"tapes": [tape], "after_anchor": "here"}
            assert (await client.post("/v1/search", json=by_anchor)).status_code == 403


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
