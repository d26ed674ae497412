"""Files in the web chat: brought, shown and given only to whom they belong, within their bounds."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from web_chat import ADA, EVE, opened
from web_stage import SESSION, app_of, program

from bot.bus import Activity, Answer, OutgoingFile
from bot.tape.entries import event
from bot.testing.scripted_model import ScriptedModel, text_reply
from channels.web.routes import CHUNK_BYTES, MAX_CONCURRENT_DOWNLOADS, UserSlots
from channels.web.uploads import UploadStore


async def test_an_upload_goes_with_its_message_and_is_shown_to_its_sender_alone(stage, page):
    data = b"\x89PNG not quite"
    upload = await stage.upload("..%2F..%2Fcat.png", data)
    kept = [path for path in stage.folder.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    await page.say("look", files=(upload,))
    await page.until(lambda: page.said("bot"))
    row = next(iter(page.rows.values()))
    (file,) = row["attachments"]
    assert (file["kind"], file["name"], file["mime"]) == ("image", "cat.png", "image/png")
    answer = await page.fetch(file["url"])
    assert (answer.content, answer.headers["content-type"]) == (data, "image/png")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    async with opened(stage.site, EVE.id) as other:
        assert (await other.fetch(file["url"])).status_code == 404
    async with opened(stage.site, "nobody") as nobody:
        assert (await nobody.fetch(file["url"])).status_code == 401


async def test_a_file_that_could_run_is_saved_and_never_shown(stage, page):
    upload = await stage.upload("x.svg", b"<svg onload=alert(1)>", "image/svg+xml")
    await page.say("", files=(upload,))
    await page.until(lambda: page.said("bot"))
    (file,) = next(iter(page.rows.values()))["attachments"]
    answer = await page.fetch(file["url"])
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_an_upload_that_is_cancelled_as_it_begins_leaves_nothing(tmp_path, monkeypatch):
    """Its file is created in a thread, which may still be at it."""
    uploads, os_open = UploadStore(tmp_path, 1_000), os.open
    opening, gate, opened_late = threading.Event(), threading.Event(), threading.Event()

    def open_late(path, flags, *arguments, **options):
        if Path(path).parent.parent != tmp_path or opening.is_set():
            return os_open(path, flags, *arguments, **options)
        opening.set()
        gate.wait(30)
        try:
            return os_open(path, flags, *arguments, **options)
        finally:
            opened_late.set()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    monkeypatch.setattr(os, "open", open_late)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(uploads.save, "ada", "a.txt", "text/plain", chunks())
        assert await anyio.to_thread.run_sync(opening.wait, 30)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            gate.set()
    assert await anyio.to_thread.run_sync(opened_late.wait, 30)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_uploads_are_bounded_in_size_and_number_and_belong_to_who_brought_them(stage, page):
    upload = await stage.upload("mine.txt", b"mine")
    too_large = await stage.send("/chat/uploads?name=a", content=b"x" * 1_001)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    streamed = await stage.send("/chat/uploads?name=a", content=chunks())
    empty = await stage.send("/chat/uploads?name=a", content=b"")
    foreign = await stage.send(
        "/chat/uploads?name=a", content=b"x", headers={"Origin": "https://evil.example"}
    )
    nobody = await stage.send("/chat/uploads?name=a", "nobody", content=b"x")
    statuses = [one.status_code for one in (too_large, streamed, empty, foreign, nobody)]
    assert statuses == [413, 413, 422, 401, 401]
    for _ in range(9):
        await stage.upload("more", b"more")
    assert (await stage.send("/chat/uploads?name=a", content=b"x")).status_code == 429
    stage.access_control.inside.add(EVE.id)
    async with opened(stage.site, EVE.id) as eve:
        await eve.until(lambda: eve.welcome)
        await eve.say("this is mine", files=(upload,))
        await eve.until(lambda: eve.refused)
        assert "attach it again" in eve.refused[0]
    assert list((stage.folder / "uploads").rglob("*.new")) == []


async def test_a_message_with_its_file_is_taken_again_after_a_lost_acceptance(tmp_path):
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        upload = await stage.upload("cat.zip", b"PK", "application/zip")
        async with opened(stage.site) as page:
            await page.until(lambda: page.welcome)
            await page.say("look", files=(upload,), message="0123456789")
            await page.until(lambda: page.said("bot"))
    async with program(tmp_path, ScriptedModel()) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await page.say("look", files=(upload,), message="0123456789")
        await page.until(lambda: not page.unsent)
        assert page.refused == []
        assert await stage.lines() == [("person", "look"), ("bot", "ok")]


async def test_a_file_of_a_notice_is_only_for_its_chat(stage, page, tmp_path):
    (tmp_path / "secret.zip").write_bytes(b"PK")
    files = (OutgoingFile("secret.zip", tmp_path / "secret.zip"),)
    await stage.host.bus.send(Answer(ADA.address, "notice-1", "Here.", files=files))
    await page.until(lambda: page.files)
    ((url, (name, answer)),) = page.files.items()
    assert (name, answer.content) == ("secret.zip", b"PK")
    async with opened(stage.site, EVE.id) as eve:
        assert (await eve.fetch(url)).status_code == 404


async def test_files_that_come_after_the_words_of_their_answer_are_shown(stage, page):
    reply = event("reply", {"text": "here", "files": [["x.zip", "x.zip"]]}, turn="t-1")
    end = event("turn.end", {"turn": "t-1", "answered": True, "inbound": []})
    await stage.host.store.create_tape(SESSION)
    await stage.host.store.append_many(SESSION, [reply, end])
    await stage.host.bus.send(Activity(ADA.address, "thinking"))
    await page.until(lambda: "t-1" in page.rows)
    assert page.rows["t-1"]["files"] == []
    path = stage.host.services.exports / "x.zip"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PK")
    files = (OutgoingFile("x.zip", path),)
    await stage.host.bus.send(Answer(ADA.address, "t-1", "here", stream="t-1", files=files))
    await page.until(lambda: page.rows["t-1"]["files"])
    assert [answer.content for _, answer in page.files.values()] == [b"PK"]


async def test_of_attachments_that_nobody_takes_a_few_are_held_and_those_of_others_are_sent(
    stage, page
):
    upload = await stage.upload("a.png", b"x")
    await page.say("look", files=(upload,))
    await page.until(lambda: page.said("bot"))
    heard = next(row for row in page.rows.values() if row["attachments"])
    data = b"x" * (3 * CHUNK_BYTES)
    stage.site.blobs["a.png"] = data
    app = app_of(stage)
    held, sent, taken = list[int](), list[int](), anyio.Event()

    async def fetch() -> None:
        path, _, query = heard["attachments"][0]["url"].partition("?")
        size = 0

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(message: Any) -> None:
            nonlocal size
            if message["type"] == "http.response.body":
                assert len(message["body"]) <= CHUNK_BYTES
                size += len(message["body"])
                if size == CHUNK_BYTES:
                    held.append(1)
                    await taken.wait()

        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(),
                 "headers": [(b"authorization", f"Bearer {ADA.id}".encode())]}  # fmt: skip
        await app(scope, receive, send)
        sent.append(size)

    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT_DOWNLOADS + 3):
            tasks.start_soon(fetch)
        await stage.host.wait_until(lambda: len(held) >= MAX_CONCURRENT_DOWNLOADS)
        assert len(held) == MAX_CONCURRENT_DOWNLOADS
        taken.set()
    assert sent == [len(data)] * (MAX_CONCURRENT_DOWNLOADS + 3)


async def test_who_takes_no_attachment_of_many_keeps_only_their_own_waiting():
    slots, sent, taken = UserSlots(), list[str](), anyio.Event()

    async def attachment(visitor: str) -> None:
        async with slots.acquire(visitor):
            sent.append(visitor)
            await taken.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT_DOWNLOADS + 3):
            tasks.start_soon(attachment, "slow")
        tasks.start_soon(attachment, "other")
        await anyio.wait_all_tasks_blocked()
        assert sorted(sent) == ["other", *["slow"] * MAX_CONCURRENT_DOWNLOADS]
        taken.set()
    assert sent.count("slow") == MAX_CONCURRENT_DOWNLOADS + 3
