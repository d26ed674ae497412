"""Folders of files: what a model and a person keep, read, find, send, restore and delete, and whose they are."""

from __future__ import annotations

import mimetypes
import re
import stat
from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from office_files import EPUB, SHEETS, pdf

from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.memory.records.file_names import LONGEST_NAME, clean_name, name_key
from bot.runtime.app import open_app
from bot.runtime.settings import Settings
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import session_host
from tests.bot.agent.telling import BOB, EVE, ToolChat, forget, pressed, say, talk

HOSTILE = [
    *("../../../etc/passwd", "..\\..\\boot.ini", "/etc/shadow", "a\0b.txt", "x" * 4_000 + ".pdf"),
    *("\u202egpj.exe", "CON", "nul.txt", "..", "", "line\nbreak\x1b[31m.txt", "`/memory clear`"),
    *(".hidden", "~", "a/b/../../c"),
]


class Files(ToolChat):
    """A chat whose model keeps files, and the home folder."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    async def manage(self, op: str, name: str, **more) -> str:
        return await self.call("files_manage", "my file", op=op, name=name, **more)

    async def command(self, text: str, **more) -> str:
        return await say(self.host, f"/files {text}".strip(), **more)

    async def upload(self, name: str, data: bytes, keep: bool = True, **more) -> str:
        """Send a file, as a channel does once it is stored, and have it kept."""
        blob = await FolderBlobs(self.folder / "blobs").put(data)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        file = Attachment("document", name, mime, len(data), blob)
        told = await say(self.host, "look", attachments=(file,), **more)
        return await self.command("keep", **more) if keep else told

    def kept(self, owner: str = "person-fake-7") -> dict:
        """Return what the owner of the machine finds in the home folder."""
        at = self.folder / "files" / owner
        return {path.name: path.read_bytes() for path in at.iterdir()} if at.is_dir() else {}

    def traces(self, words: bytes) -> list:
        """Return the files in the home folder that hold these bytes."""
        every = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path for path in every if words in path.read_bytes()]

    def blobs(self) -> list:
        return [path for path in (self.folder / "blobs").rglob("*") if path.is_file()]


@pytest.fixture
async def files(tmp_path):
    made = Files(tmp_path / "home")
    async with session_host(made.folder, made.model, files_mb=1) as made.host:
        yield made


@pytest.mark.parametrize(
    ("name", "data", "words", "place"),
    [
        ("lease.pdf", pdf("The rent is 950.", "The deposit is three rents."), "deposit", "page 2"),
        ("budget.xlsx", SHEETS, "plumber", "sheet Costs"),
        ("whale.epub", EPUB, "Queequeg", "chapter The Carpet-Bag"),
    ],
)
async def test_what_is_kept_is_read_and_found_with_its_place(files, name, data, words, place):
    assert await files.upload(name, data)
    assert f"[{name}, {place}]\n" in await files.call("files_read", "my file", name=name)
    assert f"{name}, {place}: " in await files.call("files_read", "my file", find=words)
    assert f"file:{name}, {place}: " in await files.call("memory_recall", query=words, days=30)
    outside = [
        one.meta.get("from_outside") for one in await files.host.tape() if one.kind == "tool_result"
    ]
    assert outside == [True] * 3
    await talk(files.host, (f"/memory search {words}", f"`{name}`, {place}: "), (f"And {words}?",))
    assert f"file:{name}, {place}" in str(files.model.requests_for()[-1].messages[-1])
    assert files.kept() == {name: data}
    [path] = (files.folder / "files" / "person-fake-7").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


async def test_the_former_version_comes_back_and_what_a_person_kept_stays(files):
    for text in ("first secret", "second try", "third try"):
        told = await files.manage("write", "list.md", text=text)
    assert "/files undo list.md" in told
    for left in (b"second try", b"third try"):
        await files.command("undo list.md")
        assert files.kept() == {"list.md": left}
    assert "first secret" not in str(await files.host.tape("files:person:fake:7"))
    await files.upload("plan.txt", b"mine")
    for text in ("two", "three"):
        await files.manage("write", "plan.txt", text=text)
    await files.command("undo plan.txt")
    assert files.kept()["plan.txt"] == b"mine"
    assert len(files.blobs()) == 4


async def test_the_model_deletes_nothing_and_a_button_deletes_for_good(files):
    await files.manage("write", "other.txt", text="zebra crossing")
    assert "Not deleted yet" in await files.manage("delete", "other.txt")
    assert "Delete the file `other.txt` for good?" in files.host.channel.answers[-1].text
    assert files.kept() == {"other.txt": b"zebra crossing"}
    assert await say(files.host, pressed(files.host)[0][1]) == "Deleted `other.txt` for good."
    assert "No file has these words" in await files.command("find zebra")
    assert (files.kept(), files.blobs()) == ({}, [])


async def test_what_is_forgotten_is_gone_from_files_and_from_all_that_showed_them(files):
    data = pdf("The rent is 950 euros.", "The heron flies at dawn.")
    await files.upload("lease.pdf", data)
    await files.call("files_read", "my file", name="lease.pdf")
    await files.command("send lease.pdf")
    await say(files.host, "What about the rent of 950 euros?")
    assert "File `lease.pdf`" in await forget(files.host, "heron")
    for words in (b"heron", b"950 euros.", data[-200:]):
        assert files.traces(words) == []
    assert "No files are kept" in await files.command("")


async def test_a_group_has_its_own_folder_in_the_group_only(files):
    group = {"chat": "-5", "private": False}
    bob = {**group, "sender": BOB, "role": "member"}
    await files.manage("write", "mine.md", text="private")
    await files.upload("ours.txt", b"shared", **group)
    listed = await files.command("", **group)
    assert "ours.txt" in listed
    assert "mine.md" not in listed
    assert "ours.txt" not in await files.command("")
    assert "only an owner, or who kept" in await files.command("delete ours.txt", **bob)
    await files.upload("bobs.txt", b"bob's", **bob)
    assert (await files.command("delete bobs.txt", **bob)).startswith("Deleted `bobs.txt`")
    await say(files.host, "/memory forget shared", **bob)
    assert pressed(files.host) == []


async def test_what_does_not_fit_or_is_private_is_not_kept(files):
    await files.upload("big.bin", bytes(900_000))
    assert "more than 1 MB; delete files first" in await files.upload("more.bin", b"1" * 200_000)
    await talk(files.host, ("/problem new tax",), ("/problem private on",))
    assert "private" in await files.upload("tax.txt", b"secret")
    assert set(files.kept()) == {"big.bin"}


@given(st.text(max_size=400) | st.sampled_from(HOSTILE))
def test_a_cleaned_name_is_one_safe_part_of_a_path(name):
    safe = clean_name(name)
    assert clean_name(safe) == safe
    assert safe.isprintable()
    assert 0 < len(safe.encode()) <= LONGEST_NAME
    assert not {"/", "\\", "\0", ":", "`"} & set(safe)
    assert not safe.startswith(".")
    assert name_key(safe) == name_key(safe.upper()) or len(safe.upper()) != len(safe)


async def test_no_name_leaves_the_folder_and_no_link_there_is_followed(files, tmp_path):
    outside, at = tmp_path / "outside.txt", files.folder / "files" / "person-fake-7"
    outside.write_text("mine")
    at.mkdir(parents=True)
    (at / "a.txt").symlink_to(outside)
    for number, name in enumerate(["a.txt", *HOSTILE]):
        assert (await files.upload(name, f"text {number}".encode())).startswith("Kept as ")
    assert "\u202e" not in await files.command("")
    assert outside.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"home", "outside.txt"}
    kept = [path for path in (files.folder / "files").rglob("*") if path.is_file()]
    assert {path.parent for path in kept} == {at}


@asynccontextmanager
async def program(home):
    settings = Settings(_env_file=None, home=home, model="offline")
    async with open_app(settings) as app, anyio.create_task_group() as tasks:
        channels = [FakeChannel(app.bus.channel(name), name) for name in ("fake", "other")]
        for one in (app.bus, app.supervisor, *channels):
            tasks.start_soon(one.run)
        yield channels
        tasks.cancel_scope.cancel()


async def ask(channel, text: str, **more) -> str:
    return await channel.wait_for_answer(await channel.send(text, **more))


async def test_linked_chats_share_one_folder_until_they_part(tmp_path):
    her = {"sender": EVE, "chat": "9"}
    async with program(tmp_path) as (channel, other):
        for chat, words, more in ((channel, b"here", {}), (other, b"there", her)):
            blob = await FolderBlobs(tmp_path / "blobs").put(words)
            file = Attachment("document", "plan.md", "text/plain", 9, blob)
            await ask(chat, "look", attachments=(file,), **more)
            assert "Kept as `plan.md`" in await ask(chat, "/files keep", **more)
        code = re.search(r"`/link ([A-Z0-9-]+)`", await ask(channel, "/link"))
        await ask(other, f"/link {code[1]} yes", **her)
        await ask(channel, "/link confirm")
        for chat, more in ((channel, {}), (other, her)):
            listed = await ask(chat, "/files", **more)
            assert "`plan.md`" in listed
            assert "`plan (2).md`" in listed
        await ask(other, "/unlink yes", **her)
        assert "(2)" not in await ask(channel, "/files")
