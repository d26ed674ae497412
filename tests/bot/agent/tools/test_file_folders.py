"""Whose folder it is, what names do to it, and where it lives: linked chats, exports, a database."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
from databases import drop, fresh_database
from hypothesis import given
from hypothesis import strategies as st

from bot.bus import Attachment, Sender
from bot.bus.media.blobs import FolderBlobs
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.memory.records.event_names import FILE_DELETED, FILE_RESTORED
from bot.memory.records.file_names import LONGEST_NAME, clean_name, name_key
from bot.memory.records.files import FolderFold, KeptFile, change_entry, kept_entries
from bot.memory.records.tombstones import tombstone
from bot.runtime.app import open_app
from bot.runtime.settings import Settings
from bot.tape.entries import TapeEntry
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

ADA_ELSEWHERE = Sender("9", "Ada")
HOSTILE = [
    "../../../etc/passwd",
    "..\\..\\boot.ini",
    "/etc/shadow",
    "a\0b.txt",
    "x" * 4_000 + ".pdf",
    "\u202egpj.exe",
    "CON",
    "nul.txt",
    "..",
    "",
    "line\nbreak\x1b[31m.txt",
    "`/memory clear`",
    ".hidden",
    "~",
    "a/b/../../c",
]


@asynccontextmanager
async def opened(folder):
    async with session_host(folder, ScriptedModel(lambda _: text_reply("ok")), files_mb=1) as host:
        yield host


@asynccontextmanager
async def program(home, **settings):
    """Run the whole program with a channel in memory."""
    made = Settings(_env_file=None, home=home, model="offline", **settings)
    async with open_app(made) as app, anyio.create_task_group() as tasks:
        services = [app.bus.run, app.supervisor.run]
        if app.database_services is not None:
            services += [app.database_services.wakeups.run, app.database_services.leases.run]
        for run in services:
            tasks.start_soon(run)
        async with added_channel(app, "fake") as channel:
            yield app, channel
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def added_channel(app, name):
    channel = FakeChannel(app.bus.channel(name), name)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.run)
        yield channel
        tasks.cancel_scope.cancel()


async def ask(channel, text: str, **more) -> str:
    return await channel.wait_for_answer(await channel.send(text, **more))


async def keep(channel, folder, name: str, data: bytes, **more) -> str:
    blob = await FolderBlobs(folder / "blobs").put(data)
    file = Attachment("document", name, "text/plain", len(data), blob)
    await ask(channel, "look", attachments=(file,), **more)
    return await ask(channel, "/files keep", **more)


@given(st.text(max_size=400) | st.sampled_from(HOSTILE))
def test_a_cleaned_name_is_one_safe_part_of_a_path(name):
    """It is short, visible, no device and no path, and cleaning it again changes nothing."""
    safe = clean_name(name)
    assert clean_name(safe) == safe
    assert safe.isprintable()
    assert 0 < len(safe.encode()) <= LONGEST_NAME
    assert not {"/", "\\", "\0", ":", "`"} & set(safe)
    assert safe not in (".", "..")
    assert not safe.startswith(".")
    assert name_key(safe) == name_key(safe.upper()) or len(safe.upper()) != len(safe)


@given(st.lists(st.sampled_from(["keep", "write", FILE_RESTORED, FILE_DELETED]), max_size=12))
def test_a_folder_is_the_same_once_what_ended_is_erased(changes):
    """Erasing what nobody can go back to changes neither the current version nor the one before."""
    fold, tape = FolderFold("files:person:fake:7"), list[TapeEntry]()
    for change in changes:
        if change in (FILE_RESTORED, FILE_DELETED):
            made = [change_entry(change, fold, 1, str(len(tape)))]
        else:
            file = KeptFile(fold.tape, 1, 0, 0, "a", "", 1, "", written=change == "write")
            made = kept_entries(
                fold, fold.version, [], file, key=str(len(tape)), session="fake:1", turn=""
            )
        tape += [replace(entry, id=len(tape) + 1) for entry in made]
        fold.apply(tape[-1])
        gone = {number for file in fold.stale.values() for number in file.ids}
        tape = [tombstone(entry) if entry.id in gone else entry for entry in tape]
        again = FolderFold(fold.tape)
        for entry in tape:
            again.apply(entry)
        assert (again.files, again.former, again.stale) == (fold.files, fold.former, {})
        fold = again


async def test_no_name_leaves_the_folder(tmp_path):
    """Hostile names are kept under safe ones, below the folder of the person and nowhere else."""
    home = tmp_path / "home"
    async with opened(home) as host:
        for number, name in enumerate(HOSTILE):
            told = await keep(host.channel, home, name, f"text {number}".encode())
            assert told.startswith("Kept as ")
        listed = await ask(host.channel, "/files")
    assert "\u202e" not in listed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    shown = [path for path in (home / "files").rglob("*") if path.is_file()]
    assert {path.parent for path in shown} == {home / "files" / "person-fake-7"}


async def test_a_link_that_somebody_put_there_is_not_followed(tmp_path):
    """What the owner has in the readable folder stays as it is."""
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    home = tmp_path / "home"
    shown = home / "files" / "person-fake-7"
    shown.mkdir(parents=True)
    (shown / "a.txt").symlink_to(outside)
    async with opened(home) as host:
        await keep(host.channel, home, "a.txt", b"kept")
        assert outside.read_text() == "mine"
        await ask(host.channel, "/files delete a.txt")
    assert (shown / "a.txt").is_symlink()


async def test_linked_chats_share_one_folder_until_they_part(tmp_path):
    """Each sees the other's files, files of one name are told apart, and nothing moves."""
    her = {"sender": ADA_ELSEWHERE, "chat": "9"}
    async with program(tmp_path) as (app, channel), added_channel(app, "other") as other:
        await keep(channel, tmp_path, "plan.md", b"here")
        await keep(other, tmp_path, "plan.md", b"there", **her)
        await keep(other, tmp_path, "list.md", b"milk", **her)
        code = re.search(r"`/link ([A-Z0-9-]+)`", await ask(channel, "/link"))
        await ask(other, f"/link {code[1]} yes", **her)
        await ask(channel, "/link confirm")
        for chat, more in ((channel, {}), (other, her)):
            listed = await ask(chat, "/files", **more)
            assert all(name in listed for name in ("`plan.md`", "`plan (2).md`", "`list.md`"))
        await ask(other, "/unlink yes", **her)
        assert "list.md" not in await ask(channel, "/files")
        assert "list.md" in await ask(other, "/files", **her)


@pytest.fixture
def url():
    made = fresh_database()
    yield made
    drop(made)


@pytest.mark.slow
async def test_in_a_fleet_every_process_has_the_files(tmp_path, url):
    """What one program keeps in the database, another finds, sends and deletes, for good."""
    async with program(tmp_path / "one", database_url=url) as (app, channel):
        blobs = PostgresBlobs(app.database_services.database)
        blob = await blobs.put(b"the heron")
        file = Attachment("document", "plan.md", "text/plain", 9, blob, "the heron")
        await ask(channel, "look", attachments=(file,))
        assert "Kept as `plan.md`" in await ask(channel, "/files keep")
    async with program(tmp_path / "two", database_url=url) as (app, channel):
        assert "plan.md, line 1: the heron" in await ask(
            channel, "/files find heron", message_id="b1"
        )
        # A delivered file is removed again.
        channel.reports = False
        await ask(channel, "/files send plan.md", message_id="b2")
        [sent] = channel.answers[-1].files
        assert (sent.name, sent.path.read_bytes()) == ("plan.md", b"the heron")
        channel.reports = True
        await channel.report(channel.answers[-1])
        deleted = await ask(channel, "/files delete plan.md", message_id="b3")
        assert deleted.startswith("Deleted `plan.md` for good.")
        assert "No files are kept" in await ask(channel, "/files", message_id="b4")
        assert "No file has these words" in await ask(channel, "/files find heron", message_id="b5")
    assert not (tmp_path / "one" / "files").exists()
    assert not (tmp_path / "two" / "files").exists()
