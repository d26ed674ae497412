"""Folders of files: what a model and a person keep, read, find, send, restore and delete."""

from __future__ import annotations

import stat
from contextlib import asynccontextmanager

import pytest
from office_files import EPUB, SHEETS, pdf

from bot.bus import Attachment, Sender
from bot.bus.media.blobs import FolderBlobs
from bot.memory.records.event_names import FILE_KEPT, FILE_TEXT
from bot.memory.records.tombstones import is_erased
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

BOB = Sender("8", "Bob")
FOLDER = "files:person:fake:7"
MINE = "person-fake-7"


class Files:
    """A chat whose model keeps files, and the home folder."""

    def __init__(self, folder):
        self.folder = folder
        self.steps: list = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))

    @property
    def channel(self):
        return self.host.channel

    async def ask(self, text: str, **more):
        """Send a message; return its answer, with buttons and files."""
        await self.channel.wait_for_answer(await self.channel.send(text, **more))
        return self.channel.answers[-1]

    async def call(
        self,
        name: str,
        said: str = "my file",
        /,
        *,
        chat="1",
        private=True,
        role="owner",
        **arguments,
    ):
        """Have the model call a tool; return its result."""
        self.steps = [tool_call_reply((name, arguments))]
        await self.ask(said, chat=chat, private=private, role=role)
        results = [one for one in await self.host.tape(f"fake:{chat}") if one.kind == "tool_result"]
        return results[-1]

    async def said(self, *arguments, **more) -> str:
        return (await self.call(*arguments, **more)).payload["content"]

    async def manage(self, do: str, name: str, said: str = "my file", /, **more) -> str:
        return await self.said("files_manage", said, do=do, name=name, **more)

    async def command(self, text: str, **more) -> str:
        return (await self.ask(f"/files {text}", **more)).text

    async def upload(
        self, name: str, data: bytes, said: str = "look", mime="application/octet-stream", **more
    ):
        """Send a file, as a channel does once it is stored."""
        blob = await FolderBlobs(self.folder / "blobs").put(data)
        file = Attachment("document", name, mime, len(data), blob)
        return await self.ask(said, attachments=(file,), **more)

    async def tape(self, tape: str = FOLDER):
        return await self.host.tape(tape)

    def offered(self) -> set:
        return {tool.name for tool in self.model.requests_for()[-1].tools} & {
            "files_read",
            "files_manage",
        }

    def shown(self, folder: str = MINE) -> dict:
        """Return what the owner of the machine finds in the home folder."""
        at = self.folder / "files" / folder
        return {path.name: path.read_bytes() for path in at.iterdir()} if at.is_dir() else {}

    def traces(self, words: bytes) -> list:
        """Return the files in the home folder that hold these bytes."""
        every = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path for path in every if words in path.read_bytes()]

    def blobs(self) -> list:
        return [path for path in (self.folder / "blobs").rglob("*") if path.is_file()]

    async def forget(self, words: str) -> str:
        question = await self.ask(f"/memory forget {words}")
        await self.ask(question.buttons[0].command)
        return question.text


@asynccontextmanager
async def open_files(folder, files_mb=1):
    files = Files(folder)
    async with session_host(folder, files.model, files_mb=files_mb) as files.host:
        yield files


async def test_what_a_person_sends_is_kept_on_their_word_and_read_with_its_pages(tmp_path):
    """A PDF is read by page, and the owner of the machine finds it in the home folder."""
    data = pdf("The rent is 950 euros.", "The deposit is three rents.")
    async with open_files(tmp_path) as files:
        await files.upload("lease.pdf", data, "keep this file", "application/pdf")
        assert "Kept as lease.pdf" in await files.manage("keep", "lease.pdf")
        read = await files.call("files_read", name="lease.pdf")
        assert "[lease.pdf, page 2]\nThe deposit is three rents." in read.payload["content"]
        assert read.meta["from_outside"] is True
        assert files.shown() == {"lease.pdf": data}
        [path] = (tmp_path / "files" / MINE).iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.parametrize(
    ("name", "data", "source"),
    [("budget.xlsx", SHEETS, "sheet Costs"), ("whale.epub", EPUB, "chapter The Carpet-Bag")],
)
async def test_a_search_cites_the_place_in_the_file(tmp_path, name, data, source):
    """Sheets and chapters are sources, for the tool, for a recall, and for a person."""
    words = {"budget.xlsx": "plumber", "whale.epub": "Queequeg"}[name]
    async with open_files(tmp_path) as files:
        await files.upload(name, data)
        await files.command("keep")
        assert f"{name}, {source}: " in await files.said("files_read", find=words)
        recalled = await files.call("memory_recall", query=words, days=30)
        assert f"file:{name}, {source}: " in recalled.payload["content"]
        assert recalled.meta["from_outside"] is True
        assert f"{name}, {source}: " in (await files.ask(f"/memory search {words}")).text
        await files.ask(f"What about {words}?")
        assert f"file:{name}, {source}" in str(files.model.requests_for()[-1].messages[-1])


async def test_who_has_no_files_pays_no_token(tmp_path):
    """The tools are offered with a file in view, in the folder, or spoken of; and not otherwise."""
    async with open_files(tmp_path) as files:
        await files.ask("hello")
        assert files.offered() == set()
        await files.ask("Write me a shopping list as a file, please")
        assert files.offered() == {"files_read", "files_manage"}
        await files.ask("never mind")
        assert files.offered() == set()
        await files.manage("write", "list.md", text="milk")
        await files.ask("thanks")
        assert files.offered() == {"files_read", "files_manage"}
    async with open_files(tmp_path / "off", files_mb=0) as files:
        await files.ask("a file")
        assert files.offered() == set()


async def test_a_file_is_sent_with_the_answer(tmp_path):
    """The tool sends it with the turn's answer, the command with its reply; both name the file."""
    async with open_files(tmp_path) as files:
        await files.manage("write", "list.md", text="milk\nbread")
        await files.manage("send", "list.md")
        for answer in (files.channel.answers[-1], await files.ask("/files send list.md")):
            [sent] = answer.files
            assert (sent.name, sent.path.read_text()) == ("list.md", "milk\nbread")


async def test_the_former_version_stays_and_comes_back(tmp_path):
    """Of three versions the first is gone from every place, and undo goes back and forth."""
    async with open_files(tmp_path) as files:
        for text in ("first secret", "second try", "third try"):
            told = await files.manage("write", "list.md", text=text)
        assert "/files undo list.md" in told
        assert "the version before again" in await files.command("undo list.md")
        assert "second try" in await files.said("files_read", name="list.md")
        assert files.shown() == {"list.md": b"second try"}
        await files.command("undo list.md")
        assert files.shown() == {"list.md": b"third try"}
        assert not any("first secret" in str(entry.payload) for entry in await files.tape())
        assert len(files.blobs()) == 2


async def test_the_model_deletes_nothing_and_a_button_deletes_for_good(tmp_path):
    """The person is asked; after the press, text, index, bytes and copies are gone."""
    async with open_files(tmp_path) as files:
        await files.upload("plan.txt", b"the heron flies at dawn")
        await files.command("keep plan.txt")
        await files.command("send plan.txt")
        await files.forget("heron")
        assert files.shown() == {}
        await files.manage("write", "other.txt", text="zebra crossing")
        assert "Not deleted yet" in await files.manage("delete", "other.txt")
        question = files.channel.answers[-1]
        assert "Delete the file `other.txt` for good?" in question.text
        assert files.shown() == {"other.txt": b"zebra crossing"}
        pressed = await files.ask(question.buttons[0].command)
        assert pressed.text == "Deleted `other.txt` for good."
        assert files.shown() == {}
        assert "No file has these words" in await files.command("find zebra")
        kept = [one for one in await files.tape() if one.name in (FILE_KEPT, FILE_TEXT)]
        assert kept
        assert all(map(is_erased, kept))
        assert files.blobs() == []


async def test_what_is_forgotten_is_gone_from_files_and_from_all_that_showed_them(tmp_path):
    """The words of one page take the file, the message that brought it, results and copies."""
    data = pdf("The rent is 950 euros.", "The heron flies at dawn.")
    async with open_files(tmp_path) as files:
        await files.upload("lease.pdf", data, mime="application/pdf")
        await files.command("keep")
        await files.said("files_read", name="lease.pdf")
        await files.command("send lease.pdf")
        await files.ask("What about the rent of 950 euros?")
        question = await files.forget("heron")
        assert "File `lease.pdf`" in question
        assert "1 file" in question
        for words in (b"heron", b"950 euros.", data[-200:]):
            assert files.traces(words) == []
        assert "No files are kept" in await files.command("")


async def test_a_group_has_its_own_folder_in_the_group_only(tmp_path):
    """A member's private folder is not the group's, and only keeper or owner change a file there."""
    group = {"chat": "-5", "private": False}
    async with open_files(tmp_path) as files:
        await files.manage("write", "mine.md", text="private")
        await files.upload("ours.txt", b"shared", **group)
        await files.command("keep", **group)
        listed = await files.command("", **group)
        assert "ours.txt" in listed
        assert "mine.md" not in listed
        assert "ours.txt" not in await files.command("")
        refused = await files.command("delete ours.txt", sender=BOB, role="member", **group)
        assert "only an owner, or who kept the file" in refused
        await files.upload("bobs.txt", b"bob's", sender=BOB, role="member", **group)
        await files.command("keep bobs.txt", sender=BOB, role="member", **group)
        deleted = await files.command("delete bobs.txt", sender=BOB, role="member", **group)
        assert deleted.startswith("Deleted `bobs.txt`")
        asked = await files.ask("/memory forget shared", sender=BOB, role="member", **group)
        assert asked.buttons == ()
        assert "ours.txt" in await files.command("", **group)


async def test_the_folder_has_a_limit_and_says_so(tmp_path):
    """What does not fit is refused in words, and nothing of it stays."""
    async with open_files(tmp_path) as files:
        await files.upload("big.bin", bytes(900_000))
        await files.command("keep")
        await files.upload("more.bin", b"1" * 200_000)
        assert "more than 1 MB; delete files first" in await files.command("keep more.bin")
        assert set(files.shown()) == {"big.bin"}


async def test_nothing_of_a_private_problem_is_kept(tmp_path):
    """Every model may read the folder, so a private problem keeps no file there."""
    async with open_files(tmp_path) as files:
        await files.ask("/problem new tax")
        await files.ask("/problem private on")
        await files.upload("tax.txt", b"secret")
        assert "private" in await files.command("keep")
        await files.ask("/problem switch general")
        assert "No file was sent here lately" in await files.command("keep")


async def test_what_a_person_kept_stays_however_often_the_model_writes_over_it(tmp_path):
    """A page that asks for two texts in a row ends nothing that a person kept."""
    async with open_files(tmp_path) as files:
        await files.upload("plan.txt", b"mine", mime="text/plain")
        await files.command("keep plan.txt")
        for text in ("two", "three", "four"):
            await files.manage("write", "plan.txt", text=text)
        await files.command("undo plan.txt")
        assert files.shown() == {"plan.txt": b"mine"}
        await files.command("undo plan.txt")
        assert files.shown() == {"plan.txt": b"four"}
        assert len(files.blobs()) == 2
