"""The web channel below open pages: each shows the whole conversation once, whatever happens in between."""

from __future__ import annotations

import json
import stat
from uuid import uuid4

from web_chat import ADA, opened
from web_stage import SESSION, program, talked

from bot.bus import Address, Answer, Button
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_a_message_is_answered_in_formatted_text_and_is_a_row_with_a_place(stage, page):
    await talked(page, "hi <b>there</b>")
    heard, answer = page.rows.values()
    assert (heard["author"], heard["text"], heard["html"]) == ("person", "hi <b>there</b>", None)
    assert answer["html"].strip() == "<p><strong>Hello</strong> Ada</p>"
    assert 0 < heard["position"] < answer["position"]
    await page.until(lambda: page.unsent == {})
    await stage.host.wait_for_pending(0)


async def test_a_page_that_comes_in_mid_answer_gets_what_was_said_and_the_answer_so_far(tmp_path):
    held = PausedStep(text_reply("The whole story."), partial="The whole")
    async with program(tmp_path, ScriptedModel([held])) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await page.say("tell me")
        await page.until(lambda: page.partial)
        async with opened(stage.site) as other:
            await other.until(lambda: other.partial and other.activity == "thinking")
            assert other.said("person") == ["tell me"]
            assert "The whole" in other.partial["html"]
            held.release.set()
            await other.until(lambda: other.said("bot"))
            assert other.texts == ["The whole story."]
        await page.until(lambda: page.activity == "idle" and page.said("bot"))
        assert page.texts == ["The whole story."]


async def test_a_page_that_comes_back_gets_what_it_lacks_and_nothing_twice(stage, page):
    await talked(page, "one")
    async with opened(stage.site) as other:
        other.position, other.mark = page.position, page.mark
        await talked(page, "two")
        await other.until(lambda: len(other.rows) == 2)
        lines = [frame for frame in other.frames if frame["type"] == "lines"]
        shown = [row["id"] for frame in lines for row in frame["lines"] if row["position"]]
        assert lines[0]["reset"] is False
        assert len(shown) == len(set(shown)) == 2
    # A place that is no line's: it begins anew.
    async with opened(stage.site) as stale:
        stale.position, stale.mark = 999_999, page.mark
        await stale.until(lambda: len(stale.rows) == 4)
        assert stale.frames[1]["reset"] is True


async def test_a_message_that_is_said_again_with_its_id_is_taken_once(stage, page):
    for _ in range(3):
        await page.say("only once", message="0123456789")
    await page.until(lambda: sum(f["type"] == "accepted" for f in page.frames) == 3)
    await page.until(lambda: page.said("bot"))
    await stage.host.wait_for_pending(0)
    assert await stage.lines() == [("person", "only once"), ("bot", "**Hello** Ada")]
    told = [f["duplicate"] for f in page.frames if f["type"] == "accepted"]
    assert told == [False, True, True]


async def test_what_cannot_be_understood_is_refused_and_the_page_goes_on(stage, page):
    frames = ["", "no JSON", "[" * 100_000, "{}", '{"type":"say","id":"x","text":"a"}', b"\x00\xff",
              '{"type":"say","id":"0123456789","text":"a","more":1}', '{"type":"older","before":0}',
              json.dumps({"type": "say", "id": "0123456789", "text": "a" * 32_001}),
              json.dumps({"type": "say", "id": "0123456789", "text": " \u200b"}),
              '{"type":"press","id":"0123456789","command":"no command","message":"m"}']  # fmt: skip
    for frame in frames:
        await page.raw(frame)
    await page.until(lambda: len(page.refused) == len(frames))
    assert any("at most 32,000 are allowed" in one for one in page.refused)
    await talked(page, "still here \ud800 \x00")
    assert page.said("person") == ["still here � "[:-1]]
    assert page.connections == 1


async def test_a_notice_is_kept_over_a_restart_and_shown_where_it_came(tmp_path):
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        async with opened(stage.site) as page:
            await page.until(lambda: page.welcome)
            await talked(page, "first")
        yes = (Button("Yes", "/link yes"),)
        await stage.host.bus.send(Answer(ADA.address, "notice-1", "Is this *you*?", buttons=yes))
        await stage.host.bus.send(Answer(Address("web", "telegram.13"), "notice-2", "for Eve"))
        kept = stage.folder / "notices"
        await stage.host.wait_until(lambda: kept.is_dir() and len(list(kept.glob("*/*.json"))) == 2)
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        # A page that nobody had open when it came, and after the answer of before was given again.
        await stage.host.bus.send(Answer(ADA.address, "notice-1", "Is this *you*?", buttons=yes))
        async with opened(stage.site) as page:
            await page.until(lambda: len(page.rows) == 3)
            await talked(page, "second")
            assert [row["author"] for row in page.rows.values()] == [
                "person", "bot", "notice", "person", "bot"
            ]  # fmt: skip
            notice = page.rows["notice-1"]
            assert "<em>you</em>" in notice["html"]
            assert notice["buttons"] == [{"label": "Yes", "command": "/link yes"}]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.glob("*/*")} == {0o600}
    assert not any("local" in path.name for path in kept.rglob("*"))


async def test_what_is_forgotten_leaves_the_pages_that_are_open(stage, page):
    await talked(page, "my cat is called Zephyrine")
    await talked(page, "/memory add my cat is called Zephyrine")
    async with opened(stage.site) as other:
        await other.until(lambda: len(other.rows) == 4)
        await talked(page, "/memory forget Zephyrine")
        listed = list(page.rows.values())[-1]
        await page.press(listed, listed["buttons"][0]["label"])
        for one in (page, other):
            await one.until(lambda one=one: one.rows and "Zephyrine" not in str(one.rows))
            assert one.said("person") == ["[erased]"] * 3  # a press is no line


async def test_a_press_brings_no_control_characters_to_the_tape(stage, page):
    press = {"type": "press", "id": str(uuid4()), "command": "/help\x00", "message": "a\x00\x1bb"}
    await page.send(press)
    await page.until(lambda: page.said("bot"))
    tape = repr([(one.payload, one.meta) for one in await stage.host.store.read(SESSION)])
    assert "\\x00" not in tape
    assert "\\x1b" not in tape
