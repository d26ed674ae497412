"""The site speaks the language of whoever reads it, and what is hostile stays text in all of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from bracketed_language import marked, speak
from fastapi import APIRouter
from web_rig import Rig, open_web

from bot.inspector.app import build_app


class Choices:
    """Languages that people chose, kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def language_of(self, identity: str) -> str | None:
        return self.kept.get(identity)

    async def choose(self, identity: str, language: str | None) -> None:
        self.kept.pop(identity, None)
        if language is not None:
            self.kept[identity] = language


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """A site that speaks a made-up language in place of German and of Arabic."""
    async with open_web() as rig:
        speak(monkeypatch, tmp_path / "locale", "de", "ar")
        yield rig


@pytest.fixture
async def choices(rig: Rig) -> Choices:
    """What people of the rig chose; its installation's language is Arabic."""
    choices = Choices()
    rig.app = build_app(replace(rig.web, language="ar", languages=choices), APIRouter())
    for one in (rig.client, rig.member, rig.stranger):
        one._transport = httpx.ASGITransport(rig.app)
    return choices


async def spoken(client: httpx.AsyncClient, accept: str = "", path: str = "/account") -> str:
    """Return the language and direction that a page says it is in."""
    headers = {"Accept": "text/html"} | ({"Accept-Language": accept} if accept else {})
    text = (await client.get(path, headers=headers)).text
    found = re.search(r'<html lang="(\w+)" dir="(\w+)"', text)
    assert found is not None, text[:200]
    return f"{found[1]} {found[2]}"


async def test_a_persons_choice_comes_before_the_browsers_and_that_before_the_installations(
    rig: Rig, choices: Choices
) -> None:
    assert await spoken(rig.client) == "ar rtl"
    assert await spoken(rig.client, "xx, fr-CH;q=0.4, de;q=0.9") == "de ltr"
    choices.kept["web:local"] = "ja"
    assert await spoken(rig.client, "de") == "ja ltr"
    assert await spoken(rig.member, "de") == "de ltr"
    assert await spoken(rig.stranger, "de", "/login") == "de ltr"


async def test_a_person_chooses_on_the_site_and_takes_it_back(rig: Rig, choices: Choices) -> None:
    async def choose(language: str) -> None:
        answer = await rig.client.post(
            "/account/language",
            data={"language": language},
            headers={"Origin": rig.url},
        )
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")

    await choose("de")
    assert choices.kept == {"web:local": "de"}
    page = (await rig.client.get("/account", headers={"Accept": "text/html"})).text
    assert marked("Language") in page
    assert re.search(r'<option value="de"[^>]* selected>Deutsch</option>', page)
    await choose("")
    assert choices.kept == {}
    await choose("klingon")
    assert choices.kept == {}


async def test_programs_read_english_and_people_their_language_in_the_api(
    rig: Rig, choices: Choices
) -> None:
    token = await rig.web.logins.login_store.make_token("local", "script")
    german = {"Accept-Language": "de"}
    lost = {"tape": "no:such"}
    mine = await rig.client.get("/api/v1/memory", params=lost, headers=german)
    programs = await rig.stranger.get(
        "/api/v1/memory", params=lost, headers={**german, "Authorization": f"Bearer {token}"}
    )
    assert mine.json() == {"error": "not_found", "detail": "⟦there is no tape no:such⟧"}
    assert programs.json() == {"error": "not_found", "detail": "there is no tape no:such"}
    document = await rig.client.get("/api/v1/openapi.json", headers=german)
    assert "⟦" not in document.text


async def test_scripts_are_given_their_messages_with_a_form_for_each_kind_of_number(
    rig: Rig,
) -> None:
    page = await rig.client.get("/", headers={"Accept": "text/html", "Accept-Language": "ar"})
    [path] = re.findall(r'data-messages="(/messages/ar\?v=[0-9a-f]{12})"', page.text)
    messages = (await rig.stranger.get(path)).json()
    assert messages["Sending {name}"] == "⟦Sending {name}⟧"
    # The catalogue's first form is that of zero.
    plural = dict.fromkeys(("one", "two", "few", "many", "other"), "⟦{n} new entries⟧")
    assert messages["{n} new entry"] == {"zero": "⟦{n} new entry⟧", **plural}
    assert 'data-messages=""' in await rig.page("/")
