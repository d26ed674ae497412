"""The site against those who want it to stand still, to show what it must not, or to show a bare error."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from access_rig import HTML, Site, open_site

from bot.inspector.access.middleware import CSP


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def test_what_breaks_down_is_told_with_the_headers_of_every_answer(site):
    @site.app.get("/api/v1/broken")
    async def broken() -> None:
        raise RuntimeError("a secret")

    transport = httpx.ASGITransport(site.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=site.url) as browser:
        answer = await browser.get("/api/v1/broken", headers=HTML)
    assert (answer.status_code, answer.json()["error"]) == (500, "broken")
    assert "secret" not in answer.text
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["cache-control"] == "no-store"


async def test_a_command_from_the_inspector_brings_no_control_characters_to_the_tape(rig):
    await rig.talk("fake:1", "hello")
    given = {"session": "fake:1", "text": "/memory add I like\x1b[31m \x00tea", "pressed": "a\x00b"}
    answer = await rig.client.post("/api/v1/commands", json=given)
    assert answer.status_code == 200
    tape = [one.data for one in await rig.store.read("fake:1")]
    assert not [one for one in tape if not {"\x00", "\x1b"}.isdisjoint(one.get("arguments", ""))]
    assert not [one for one in tape if "\x00" in one.get("replaces", "")]
    (fact,) = (await rig.get("/facts", tape="fake:1"))["facts"]
    assert "tea" in fact["text"]
    assert fact["text"].isprintable()
