"""Files that come with messages, and their captions."""

from __future__ import annotations

from session_rig import shown

from bot.bus import Attachment
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


async def test_an_edited_caption_keeps_the_files_that_came_with_it(tmp_path):
    held = PausedStep(text_reply("never"))
    model = ScriptedModel([held, text_reply("two files")])
    files = tuple(
        Attachment("document", name, "text/plain", 3, text=name) for name in ("a.txt", "b.txt")
    )
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("waht is this?", attachments=files)
        await held.entered.wait()
        edited = {"edits": first.id, "message_id": "m1.e1", "attachments": files[:1]}
        await host.channel.send("what is this?", **edited)
        await host.channel.wait_for_answer(first)
    (message,) = shown(model)
    assert "what is this?" in message
    assert "a.txt" in message
    assert "b.txt" in message


async def test_a_caption_that_begins_with_a_slash_is_a_caption(tmp_path):
    model = ScriptedModel([text_reply("a report")])
    document = Attachment("document", "report.pdf", "application/pdf", 3, text="the report")
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("/summary of this, please", attachments=(document,))
        assert await host.channel.wait_for_answer(sent) == "a report"
