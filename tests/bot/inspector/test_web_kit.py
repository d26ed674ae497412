"""What all pages are made of keeps the rules that the site's policy for browsers is built on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from web_rig import Rig

import bot.inspector
from bot.inspector.rendering import STATIC, asset
from bot.tape.entries import message

TEMPLATES = Path(bot.inspector.__file__).parent / "templates"
PAGES = sorted(one.name for one in TEMPLATES.glob("*.html"))

_TAG = re.compile(r"<[a-zA-Z][^>]*>", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_INLINE = re.compile(r"""\s(style|on[a-z]+|srcdoc)\s*=""", re.IGNORECASE)
_MADE = re.compile(
    r"\.(innerHTML|outerHTML)\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


@pytest.mark.parametrize("name", PAGES)
def test_template_loads_only_what_the_site_serves(name: str) -> None:
    text = (TEMPLATES / name).read_text("utf-8")
    loaded = re.findall(r"<(?:link|script|img|iframe|source)\b[^>]*?(?:href|src)=\"([^\"]*)", text)
    assert [one for one in loaded if re.match(r"\w+:|//", one)] == []
    for path in re.findall(r"asset\('([^']+)'\)", text):
        assert asset(path).startswith(f"/static/{path}?v=")
    tags = _TAG.findall(_EXPRESSION.sub("", text))
    assert [one for one in tags if _INLINE.search(one)] == []
    assert "<style" not in text
    scripts = text.split("<script")[1:]
    assert all(one.startswith(' type="module" src="{{ asset(') for one in scripts)
    assert "autoescape" not in text
    for one in re.findall(r"\{\{([^}]*)\|\s*safe", text):
        assert re.search(r"html|markdown", one), one


@pytest.mark.parametrize("name", sorted(one.name for one in STATIC.glob("*.[jc]s*")))
def test_static_file_asks_no_other_host(name: str) -> None:
    text = (STATIC / name).read_text("utf-8")
    assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import|from \"(?!\./)", text)
    # An address without its version would be another module, with a state of its own.
    assert not re.search(r"import\(\s*[\"']https?:", text)
    made = [line for line in text.splitlines() if _MADE.search(line)]
    assert len(made) == (1 if name == "site.js" else 0)


async def test_a_member_is_shown_the_way_to_what_is_theirs_alone(rig: Rig) -> None:
    theirs = {"/", "/account", "/budget"}
    for client, ways in ((rig.member, theirs), (rig.client, theirs | {"/sessions"})):
        page = (await client.get("/account", headers={"Accept": "text/html"})).text
        assert {*re.findall(r'href="(/[a-z]*)"', page.partition("</header>")[0])} == ways


async def test_halves_of_characters_on_a_tape_break_no_page_and_no_answer_of_the_api(rig: Rig):
    await rig.talk("fake:1", "hello")
    sender = {"id": "7", "name": "A\ud800"}
    half = message("user", "half \ud83d", inbound="m9", sender=sender, private=True)
    await rig.store.append("fake:1", half)
    for path in ("/sessions", "/timeline?tape=fake:1", "/api/v1/sessions"):
        answer = await rig.client.get(path)
        assert answer.status_code == 200, path
    entries = await rig.client.get("/api/v1/entries?tape=fake:1&first=1&last=99")
    assert "half" in str(entries.json())
