"""The site against those who want it to stand still, to show what it must not, or to show a bare error."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from html import unescape

import anyio
import httpx
import pytest
from access_rig import HTML, Site, open_site
from starlette.requests import Request
from web_rig import Rig, open_web

from bot.bus.media.blobs import FolderBlobs
from bot.inspector.access import middleware
from bot.inspector.access.middleware import CSP, REQUESTS, UPLOADS
from bot.inspector.access.origin import FORM_CONTENT_TYPE, fields
from bot.inspector.api import conversations as api
from bot.inspector.pages import conversations as pages
from bot.inspector.reading.diffs import diff_lines
from bot.inspector.rendering import render_markdown
from bot.runtime.app.residual_files import ResidualFiles
from channels.web.notices import MAX_NOTICES, Notice, NoticeStore


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with open_web() as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    ["[" * 1_000_000, "[" * 100 + "a*" * 500_000, "[a" * 24_000, "![" * 24_000, "> " * 24_000],
    ids=["brackets", "emphasis", "links", "images", "quotes"],
)
def test_no_answer_is_so_written_that_showing_it_takes_long(text):
    began = time.thread_time()
    html = render_markdown(text)
    assert time.thread_time() - began < 2
    assert html.count("[") == text.count("[")


def test_a_very_long_answer_is_shown_whole_as_text():
    text = "<script>alert(1)</script> & " + "word " * 20_000
    assert (
        render_markdown(text)
        == f"<pre>{text.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    )


def test_links_of_a_long_answer_with_many_are_links():
    assert render_markdown("- [a](https://example.org/x), seen\n" * 1_000).count("<a ") == 1_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a " + "!" * 100_000, "a " + "!" * 99_999 + "?"),
        ("\n".join(["x y z " * 120] * 2_000), "\n".join(["x z y " * 120] * 2_000)),
        ("\n".join(str(n % 100) for n in range(20_000)), "\n".join(str(n % 101) for n in range(20_000))),
    ],
    ids=["signs", "words", "lines"],
)  # fmt: skip
def test_no_two_versions_differ_so_that_comparing_them_takes_long(old, new):
    began = time.thread_time()
    found = diff_lines(old, new)
    assert time.thread_time() - began < 15
    for side, text in (("old", old), ("new", new)):
        lines = [getattr(one, side) for one in found if getattr(one, side) is not None]
        assert "\n".join("".join(piece.text for piece in line) for line in lines) == text


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


async def test_forms_that_never_come_keep_nobody_out_for_long(site, monkeypatch):
    monkeypatch.setattr(middleware, "_BODY", 0.2)
    monkeypatch.setattr(middleware, "_WAIT", 30.0)
    slow = {"Content-Type": FORM_CONTENT_TYPE, "Content-Length": "40", "Origin": site.url}

    async def never() -> AsyncIterator[bytes]:
        yield b"code="
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        stranger = await site.browser()
        for _ in range(REQUESTS):
            tasks.start_soon(lambda: stranger.post("/login", headers=slow, content=never()))
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(30):
            assert (await (await site.browser()).get("/login")).status_code == 200
        tasks.cancel_scope.cancel()


async def test_a_form_without_a_length_is_not_read_where_files_are_sent():
    async def receive() -> dict[str, object]:
        raise AssertionError

    kept = [
        (b"content-type", FORM_CONTENT_TYPE.encode()),
        (b"content-length", b"5"),
        (b"transfer-encoding", b"chunked"),
    ]
    scope = {"type": "http", "method": "POST", "path": UPLOADS, "headers": kept}
    assert await fields(Request(scope, receive)) == {}


async def test_a_cursor_that_nobody_was_given_is_refused_however_deep_it_is(rig):
    import base64

    deep = base64.urlsafe_b64encode(b"[" * 1_490).decode()
    answer = await rig.client.get("/api/v1/sessions", params={"cursor": deep})
    assert answer.status_code == 422


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


async def test_a_notice_with_words_that_were_to_be_forgotten_is_gone_and_does_not_come_back(
    rig, tmp_path
):
    folder = tmp_path / "channels" / "web" / "notices"
    notices = NoticeStore(folder)
    await notices.add("web:local", Notice("n1", 0, "Zephyrine sent the code.", ""))
    assert await notices.load("web:local")
    traces = ResidualFiles(tmp_path, rig.host.bus, FolderBlobs(tmp_path / "blobs"))
    assert await traces.erase(["zephyrine"], ()) == 1
    assert await notices.load("web:local") == []
    await notices.add("web:local", Notice("n2", 0, "Joined.", ""))
    assert [one.id for one in await notices.load("web:local")] == ["n2"]
    assert not any("Zephyrine" in path.read_text() for path in folder.rglob("*.json"))


async def test_of_many_notices_the_newest_are_kept_and_none_is_written_twice(tmp_path):
    notices = NoticeStore(tmp_path)
    for number in range(MAX_NOTICES + 5):
        assert await notices.add("web:local", Notice(f"n{number}", 0, "Who?", f"{number:02}"))
    assert not await notices.add("web:local", Notice("n24", 0, "Who?", "99"))
    await notices.add("web:telegram.8", Notice("n1", 0, "For Ben.", "00"))
    kept = [one.id for one in await notices.load("web:local")]
    assert kept == [f"n{number}" for number in range(5, MAX_NOTICES + 5)]
    assert [one.text for one in await notices.load("web:telegram.8")] == ["For Ben."]


async def test_a_turn_far_back_is_found_by_every_link_and_its_bare_id_reads_no_whole_tape(
    rig, monkeypatch
):
    for module in (pages, api):
        monkeypatch.setattr(module, "FOUND_WITHIN", 100)
    tape = await rig.long_tape(3_000)
    answer = await rig.client.get("/api/v1/view", params={"tape": tape, "turn": "turn-10"})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    (turn, *_) = (await rig.get("/turns", tape=tape, before=100))["turns"]
    shown = await rig.page("/turn", tape=tape, turn=turn["id"], near=turn["first"])
    for rel in ("prev", "next"):
        (link,) = re.findall(rf'rel="{rel}" href="([^"]+)"', shown)
        answer = await rig.client.get(unescape(link), headers=HTML)
        assert answer.status_code == 200, link
