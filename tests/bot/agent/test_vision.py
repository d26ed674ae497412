"""What a model sees of the files that people send, and what is said where it sees none."""

from __future__ import annotations

import base64

import pytest

from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import CapabilityProfile
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply
from tests.bot.agent.telling import say

SEES = CapabilityProfile(vision=True)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


@pytest.fixture
async def photos(tmp_path):
    """Return a picture that is kept, and what reads it."""
    blobs = FolderBlobs(tmp_path / "blobs")
    photo = Attachment("image", "photo.jpg", "image/png", len(PNG), await blobs.put(PNG))
    return (photo,), blobs.get


async def test_a_photo_that_was_sent_is_in_the_request_also_after_a_restart(tmp_path, photos):
    photo, images = photos
    model = ScriptedModel(lambda _: text_reply("a cat"), profile=SEES)
    for text, files in (("What is this?", photo), ("And its colour?", ())):
        async with session_host(tmp_path, model, images=images) as host:
            assert await say(host, text, attachments=files) == "a cat"
    first, again = model.requests_for()
    told, seen = first.messages[1]["content"]
    assert told["text"].endswith("Ada] What is this?\n(image photo.jpg)")
    assert seen == {"type": "image_url", "image_url": {"url": URL}}
    assert again.messages[1] == first.messages[1]


@pytest.mark.parametrize(
    ("profile", "note", "shown"),
    [
        (CapabilityProfile(), None, "the picture is kept"),
        (SEES, "larger than 20 MB, not taken", "I could not read_ `photo.jpg`: larger than"),
    ],
)
async def test_an_answer_of_a_model_that_could_not_see_says_so_once(tmp_path, profile, note, shown):
    blob = None if note else "b1"
    photo = Attachment("image", "photo.jpg", "image/png", len(PNG), blob=blob, note=note)
    model = ScriptedModel([text_reply("Lovely!"), text_reply("Still.")], profile=profile)
    async with session_host(tmp_path, model) as host:
        assert shown in await say(host, "look", attachments=(photo,))
        assert await say(host, "And now?") == "Still."


async def test_a_document_is_quoted_to_the_model_and_a_voice_that_was_not_heard_is_told(tmp_path):
    why = "no transcription model is set (TAPEBOT_TRANSCRIPTION_MODEL)"
    voice = Attachment("voice", "voice", "audio/ogg", 3, blob="b1", note=why)
    report = Attachment("document", "report.pdf", "application/pdf", 9, "a" * 64, "The sum is 7.")
    model = ScriptedModel([text_reply("read"), text_reply("Nice to hear you.")])
    async with session_host(tmp_path, model) as host:
        await say(host, "", attachments=(report,))
        content = str(model.requests_for()[0].messages[-1]["content"])
        assert content.endswith("(document report.pdf)\n<quoted>\n> The sum is 7.\n</quoted>")
        told = await say(host, "", attachments=(voice,))
        assert f"could not listen to your voice message: {why}" in told
