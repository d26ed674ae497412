"""What a person may rely on who sends a file."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from databases import drop, fresh_database
from media_pdfs import pdf

from bot.bus import Attachment, BusError, FileUnavailable, RemoteFile
from bot.bus.media import documents as reading
from bot.bus.media.attachments import NO_SPACE, AttachmentService
from bot.bus.media.blobs import FolderBlobs
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.core.database.connections import Database
from bot.core.errors import TransientModelError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
JPEG = b"\xff\xd8\xff\xe0" + bytes(40)
OGG = b"OggS" + bytes(40)


def sent(kind, data, name="file", mime="application/octet-stream", size=None) -> RemoteFile:
    """Return a file as a channel would hand it over."""

    async def fetch(most: int) -> bytes:
        return data[:most]

    return RemoteFile(kind, name, mime, size, fetch)


class Ears:
    """A transcriber that hears what it was told to."""

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


async def test_a_photo_is_kept_with_its_type_by_content(blobs):
    taken = await desk(blobs).receive(sent("image", PNG, "photo.jpg", "image/jpeg"))
    assert (taken.kind, taken.mime, taken.size, taken.note) == ("image", "image/png", 48, None)
    assert await blobs.get(taken.blob or "") == PNG


async def test_a_photo_that_was_sent_as_a_document_is_a_photo(blobs):
    taken = await desk(blobs).receive(sent("document", JPEG, "IMG_1.jpg"))
    assert (taken.kind, taken.mime) == ("image", "image/jpeg")


async def test_a_picture_of_a_kind_that_no_model_takes_is_kept_and_says_so(blobs):
    taken = await desk(blobs).receive(
        sent("image", b"\x00\x00\x00\x18heic", "a.heic", "image/heic")
    )
    assert taken.blob is not None
    assert taken.note == "this kind of file cannot be read"


async def test_a_document_is_read(blobs):
    taken = await desk(blobs).receive(sent("document", pdf(["Dear Ada"]), "letter.pdf"))
    assert (taken.mime, taken.text, taken.note) == ("application/pdf", "Dear Ada", None)
    taken = await desk(blobs).receive(sent("document", "größer;1\n".encode(), "a.csv", "text/csv"))
    assert (taken.mime, taken.text) == ("text/csv", "größer;1")


async def test_a_file_that_cannot_be_read_is_kept_and_says_so(blobs):
    taken = await desk(blobs).receive(sent("document", bytes(range(256)), "a.bin"))
    assert taken.blob is not None
    assert (taken.text, taken.note) == (None, "this kind of file cannot be read")


async def test_a_file_that_says_it_is_too_large_is_not_even_fetched(blobs):
    async def fetch(most: int) -> bytes:
        raise AssertionError("it was fetched")

    file = RemoteFile("document", "film.mkv", "video/x-matroska", 30_000_000, fetch)
    taken = await desk(blobs, max_bytes=20_000_000).receive(file)
    assert (taken.note, taken.blob) == ("larger than 20 MB, not taken", None)


async def test_a_file_that_turns_out_too_large_is_not_kept(blobs):
    taken = await desk(blobs).receive(sent("document", b"x" * 1_000_001, "big.txt", size=10))
    assert (taken.note, taken.blob) == ("larger than 1 MB, not taken", None)
    assert (await desk(blobs).receive(sent("document", b"x" * 1_000_000, "fits.txt"))).blob


async def test_a_file_that_cannot_be_fetched_says_why(blobs):
    async def gone(most: int) -> bytes:
        raise FileUnavailable("the platform has deleted it")

    taken = await desk(blobs).receive(RemoteFile("image", "photo", "image/jpeg", None, gone))
    assert taken.note == "could not be fetched: the platform has deleted it"


async def test_a_file_that_does_not_come_costs_bounded_time(blobs):
    async def never(most: int) -> bytes:
        await anyio.sleep_forever()
        return b""

    with anyio.fail_after(30):
        taken = await desk(blobs, fetch_seconds=0.01).receive(
            RemoteFile("image", "p", "", None, never)
        )
    assert taken.note == "could not be fetched within 0.01 seconds"


async def test_an_empty_file_says_so(blobs):
    taken = await desk(blobs).receive(sent("document", b"", "empty.txt"))
    assert (taken.note, taken.blob) == ("the file is empty", None)


async def test_a_voice_message_becomes_words(blobs):
    ears = Ears("I live in Oslo.")
    taken = await desk(blobs, transcriber=ears).receive(sent("voice", OGG, "voice", "audio/ogg"))
    assert (taken.kind, taken.text, taken.note) == ("voice", "I live in Oslo.", None)
    assert ears.names == ["voice.ogg"]


async def test_a_recording_that_was_sent_as_a_document_is_heard_too(blobs):
    ears = Ears("some words")
    taken = await desk(blobs, transcriber=ears).receive(
        sent("document", b"ID3" + bytes(9), "a.mp3")
    )
    assert (taken.kind, taken.text, ears.names) == ("audio", "some words", ["voice.mp3"])


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


async def test_a_disk_that_refuses_is_an_error_so_that_the_message_comes_again(blobs):
    incoming = blobs.path("0" * 64).parents[1] / "incoming"
    incoming.rmdir()
    incoming.touch()
    with pytest.raises(BusError, match="cannot be kept"):
        await desk(blobs).receive(sent("image", PNG))


async def test_many_files_at_once_are_all_taken(blobs):
    taken: list[Attachment] = []
    one = desk(blobs)

    async def take(number: int) -> None:
        taken.append(await one.receive(sent("document", f"file {number}".encode(), "a.txt")))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(take, number)
    assert {one.text for one in taken} == {f"file {number}" for number in range(30)}


async def test_documents_that_wait_to_be_read_keep_no_photo_out(blobs, tmp_path, monkeypatch):
    slow, may_end = tmp_path / "slow.py", tmp_path / "may-end"
    slow.write_text(
        "import os, sys, time\nsys.stdin.buffer.read()\n"
        f"while not os.path.exists({str(may_end)!r}): time.sleep(0.01)\n"
        'print(\'{"text": "read", "note": null}\')\n'
    )
    monkeypatch.setattr(reading.program, "__file__", str(slow))
    one, taken, fetched, all_fetched = desk(blobs), [], [], anyio.Event()

    async def document(number: int) -> None:
        async def fetch(most: int) -> bytes:
            fetched.append(number)
            if len(fetched) == 12:
                all_fetched.set()
            return pdf([f"page {number}"])

        taken.append(
            await one.receive(RemoteFile("document", "a.pdf", "application/pdf", None, fetch))
        )

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(document, number)
            await all_fetched.wait()
            photo = await one.receive(sent("image", PNG))
            assert taken == []
            may_end.touch()
    assert photo.note is None
    assert [each.text for each in taken] == ["read"] * 12


async def test_recordings_that_wait_to_be_heard_keep_no_photo_out(blobs):
    listening, may_end = [], anyio.Event()

    class SlowEars(Ears):
        async def transcribe(self, audio: bytes, name: str) -> str:
            listening.append(name)
            await may_end.wait()
            return self.hears

    one = desk(blobs, transcriber=SlowEars("words"))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(one.receive, sent("voice", OGG, "voice", "audio/ogg"))
            assert (await one.receive(sent("image", PNG))).blob is not None
            may_end.set()
    assert len(listening) == 12


async def test_a_file_is_not_kept_where_the_disk_is_nearly_full(blobs, caplog):
    free = await blobs.free()
    taken = await desk(blobs, spare_bytes=free * 2).receive(sent("image", PNG))
    assert (taken.note, taken.blob, taken.size) == (NO_SPACE, None, len(PNG))
    assert "not kept" in caplog.text
    taken = await desk(blobs, spare_bytes=free // 2).receive(sent("image", PNG))
    assert (taken.note, taken.blob is None) == (None, False)


async def test_a_file_that_is_lost_before_it_is_read_says_so(blobs):
    one = desk(blobs, transcriber=Ears("words"))

    async def lose(name: str) -> None:
        return None

    blobs.get = lose
    for file in (sent("document", b"text", "a.txt"), sent("voice", OGG)):
        assert "cannot be read again" in ((await one.receive(file)).note or "")


async def test_what_one_process_takes_in_another_reads():
    url = fresh_database()
    one, other = Database(url), Database(url)
    try:
        for database in (one, other):
            await database.open()
        taken = await desk(PostgresBlobs(one)).receive(sent("document", b"Dear Ada", "letter.txt"))
        assert taken.text == "Dear Ada"
        assert await PostgresBlobs(other).get(taken.blob or "") == b"Dear Ada"
    finally:
        for database in (one, other):
            await database.close()
        drop(url)


async def test_a_database_that_refuses_is_an_error_so_that_the_message_comes_again():
    url = fresh_database()
    database = Database(url)
    try:
        await database.open()
        await database.fetch("alter table tapebot.blob rename to away")
        with pytest.raises(BusError, match=r"cannot be kept: the database at .* refused"):
            await desk(PostgresBlobs(database)).receive(sent("image", PNG))
    finally:
        await database.close()
        drop(url)


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
