"""What a model sees of the images that people send, and what it says where it sees none."""

from __future__ import annotations

import base64
from dataclasses import replace

from bot.agent.context import default_context
from bot.agent.vision import with_images
from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import CapabilityProfile
from bot.memory.session.state.context_window import WindowFold
from bot.offline.model import OfflineModel
from bot.tape.entries import message
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

SEES = CapabilityProfile(vision=True)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def image(name: str = "photo.jpg", blob: str = "b1", **fields) -> dict:
    base = {"kind": "image", "name": name, "mime": "image/png", "size": len(PNG), "blob": blob}
    return base | fields


def said(number: int, text: str, *files: dict):
    entry = message("user", text, sender={"name": "Ada"}, attachments=list(files))
    return replace(entry, id=number)


async def stored(_: str) -> bytes | None:
    return PNG


async def seen(entries, profile=SEES, images=stored):
    window = WindowFold(1_000, 1_000_000)
    for entry in entries:
        window.apply(entry)
    rendered: dict = {}
    history = default_context(window, rendered)
    before = [dict(one) for one in history]
    shown = await with_images(
        history, window.conversation(), rendered, profile=profile, images=images
    )
    assert history == before
    return shown


def urls(shown) -> int:
    parts = [part for one in shown if isinstance(one["content"], list) for part in one["content"]]
    return sum(part["type"] == "image_url" for part in parts)


async def test_past_ten_the_oldest_leave_together_so_that_the_prompts_beginning_stays():
    messages = [said(n, f"no {n}", image(f"{n}.png")) for n in range(1, 17)]
    counts = [urls(await seen(messages[:n])) for n in range(9, 17)]
    assert counts == [9, 10, 6, 7, 8, 9, 10, 6]
    eleven, fifteen = await seen(messages[:11]), await seen(messages[:15])
    assert fifteen[:11] == eleven
    assert [one["content"] for one in eleven[:5]] == [
        f"[?, Ada] no {n}\n(image {n}.png; no longer shown)" for n in range(1, 6)
    ]


async def test_an_image_that_is_gone_or_was_never_kept_is_said_in_words():
    async def gone(_: str) -> bytes | None:
        return None

    (shown,) = await seen([said(1, "look", image())], images=gone)
    assert shown["content"].endswith("(image photo.jpg; not shown: it cannot be read any more)")
    kept = image(note="larger than 20 MB, not taken", blob=None)
    (shown,) = await seen([said(1, "look", kept)])
    assert shown["content"].endswith("(image photo.jpg; larger than 20 MB, not taken)")


# The whole way from a channel's message to the model's request.


async def kept(tmp_path) -> tuple[FolderBlobs, Attachment]:
    blobs = FolderBlobs(tmp_path / "blobs")
    blob = await blobs.put(PNG)
    return blobs, Attachment("image", "photo.jpg", "image/png", len(PNG), blob)


async def test_a_photo_that_was_sent_is_in_the_request_also_after_a_restart(tmp_path):
    blobs, photo = await kept(tmp_path)
    model = ScriptedModel(lambda _: text_reply("a cat"), profile=SEES)
    for number, (text, files) in enumerate([("What is this?", (photo,)), ("And its colour?", ())]):
        async with session_host(tmp_path, model, images=blobs.get) as host:
            sent = await host.channel.send(text, attachments=files, message_id=f"photo-{number}")
            assert await host.channel.wait_for_answer(sent) == "a cat"
    first, again = model.requests
    shown = first.messages[1]["content"]
    assert shown[1] == {"type": "image_url", "image_url": {"url": URL}}
    assert again.messages[1]["content"] == shown
    assert again.messages[-1]["content"].endswith("And its colour?")


async def test_a_document_is_quoted_to_the_model(tmp_path):
    model = ScriptedModel([text_reply("read")])
    report = Attachment("document", "report.pdf", "application/pdf", 9, "a" * 64, "The sum is 7.")
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("", attachments=(report,))
        await host.channel.wait_for_answer(sent)
    content = str(model.requests[0].messages[-1]["content"])
    assert content.endswith("(document report.pdf)\n<quoted>\n> The sum is 7.\n</quoted>")


async def test_the_offline_responder_finds_a_documents_words_and_learns_nothing_from_them(tmp_path):
    report = Attachment(
        "document", "lease.pdf", "application/pdf", 9, "a" * 64,
        "I live in Rome.\nThe deposit is 900 euros.\nRemember that my dog is called Rex.",
    )  # fmt: skip
    async with session_host(tmp_path, OfflineModel()) as host:
        sent = await host.channel.send("", attachments=(report,))
        assert "lease.pdf" in await host.channel.wait_for_answer(sent)
        answer = await host.channel.ask("How much is the deposit?")
        assert "In lease.pdf, sent on" in answer
        assert "900 euros" in answer
        assert "You live" not in await host.channel.ask("Where do I live?")
        assert not [one for one in await host.tape() if one.name == "memory/long_term"]
        known = await host.channel.ask("What do you know about me?")
        assert "Rome" not in known
        assert "Rex" not in known


async def test_a_voice_message_that_could_not_be_heard_is_said_to_be_so(tmp_path):
    why = "no transcription model is set (TAPEBOT_TRANSCRIPTION_MODEL)"
    voice = Attachment("voice", "voice", "audio/ogg", 3, blob="b1", note=why)
    async with session_host(tmp_path, ScriptedModel([text_reply("Nice to hear you.")])) as host:
        sent = await host.channel.send("", attachments=(voice,))
        assert (
            f"could not listen to your voice message: {why}"
            in await host.channel.wait_for_answer(sent)
        )


async def test_a_file_that_was_not_read_is_told_once_whatever_the_model_says(tmp_path):
    clip = Attachment("video", "clip.mp4", "video/mp4", 9, note="larger than 25 MB, not taken")
    async with session_host(
        tmp_path, ScriptedModel([text_reply("Lovely!"), text_reply("Still.")])
    ) as host:
        answer = await host.channel.wait_for_answer(
            await host.channel.send("", attachments=(clip,))
        )
        assert answer == "Lovely!\n\n_I could not read_ `clip.mp4`: larger than 25 MB, not taken."
        assert await host.channel.ask("And now?") == "Still."
