"""Files in the web chat: brought, shown and given only to whom they belong, within their bounds."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator

import pytest
from web_chat import ADA, EVE, opened
from web_stage import program

from bot.bus import Answer, OutgoingFile
from bot.testing.scripted_model import ScriptedModel, text_reply


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


@pytest.mark.slow
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
    stage.access_control.people[EVE.id] = "owner"
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
