"""What a person may rely on who sends a file."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from bot.bus import RemoteFile
from bot.bus.media.attachments import NO_SPACE, AttachmentService
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import TransientModelError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
OGG = b"OggS" + bytes(40)


def sent(kind, data, name="file", mime="application/octet-stream", size=None) -> RemoteFile:
    """Return a file as a channel would hand it over."""

    async def fetch(most: int) -> bytes:
        return data[:most]

    return RemoteFile(kind, name, mime, size, fetch)


class Ears:
    def __init__(self, hears: str | Exception) -> None:
        self.hears = hears
        self.names: list[str] = []

    async def transcribe(self, audio: bytes, name: str) -> str:
        self.names.append(name)
        if isinstance(self.hears, Exception):
            raise self.hears
        return self.hears


@pytest.fixture
def blobs(tmp_path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs")


def desk(blobs, **options) -> AttachmentService:
    return AttachmentService(blobs, **{"max_bytes": 1_000_000, **options})


async def test_a_file_that_does_not_come_costs_bounded_time(blobs):
    async def never(most: int) -> bytes:
        await anyio.sleep_forever()
        return b""

    with anyio.fail_after(30):
        taken = await desk(blobs, fetch_seconds=0.01).receive(
            RemoteFile("image", "p", "", None, never)
        )
    assert taken.note == "could not be fetched within 0.01 seconds"


async def test_a_voice_message_becomes_words(blobs):
    ears = Ears("I live in Oslo.")
    taken = await desk(blobs, transcriber=ears).receive(sent("voice", OGG, "voice", "audio/ogg"))
    assert (taken.kind, taken.text, taken.note) == ("voice", "I live in Oslo.", None)
    assert ears.names == ["voice.ogg"]


@pytest.mark.parametrize(
    ("ears", "note"),
    [
        (None, "no transcription model is set (TAPEBOT_TRANSCRIPTION_MODEL)"),
        (Ears("  "), "no words were heard in it"),
        (Ears(TransientModelError("w: no answer")), "could not be transcribed: w: no answer"),
    ],
    ids=["no-model", "silence", "failure"],
)
async def test_a_voice_message_that_was_not_heard_says_why(blobs, ears, note):
    taken = await desk(blobs, transcriber=ears).receive(sent("voice", OGG, "voice", "audio/ogg"))
    assert (taken.text, taken.note) == (None, note)
    assert await blobs.get(taken.blob or "") == OGG


async def test_a_file_is_not_kept_where_the_disk_is_nearly_full(blobs, caplog):
    free = await blobs.free()
    taken = await desk(blobs, spare_bytes=free * 2).receive(sent("image", PNG))
    assert (taken.note, taken.blob, taken.size) == (NO_SPACE, None, len(PNG))
    assert "not kept" in caplog.text
    taken = await desk(blobs, spare_bytes=free // 2).receive(sent("image", PNG))
    assert (taken.note, taken.blob is None) == (None, False)


async def test_a_voice_message_to_a_private_problem_is_not_heard_by_another_model(blobs):
    ears = Ears("Hello there")

    async def may_transcribe(session: str) -> bool:
        return session != "telegram:1"

    one = desk(blobs, transcriber=ears, may_transcribe=may_transcribe)
    voice = sent("voice", OGG, "voice", "audio/ogg")
    taken = await one.receive(replace(voice, session="telegram:1"))
    assert (taken.text, taken.blob is not None, ears.names) == (None, True, [])
    assert "this problem is private" in (taken.note or "")
    assert (await one.receive(replace(voice, session="telegram:2"))).text == "Hello there"
