"""Kill -9 while files are kept, written, restored, deleted and forgotten: each is whole, or not there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from killed_homes import STEP, killed
from sampling import many

from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import ModelReply, ModelRequest
from bot.memory.erasure.persons_entries import blobs_in
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

LEASE, FIRST, SECOND, THIRD = "the rent is 950", "milk", "milk, zqxbread", "milk, eggs"
FOLDER = "files:person:fake:7"
SHOWN = Path("files") / "person-fake-7"

ACTS = {
    "/files keep lease.txt": {"lease.txt": LEASE, "list.md": SECOND},
    f"write: {THIRD}": {"list.md": THIRD},
    "/files undo list.md": {"list.md": FIRST},
    "/files delete list.md": {},
    "forget": {},
}
"""Messages, and the files that there are once they are done."""


def turn(request: ModelRequest) -> ModelReply:
    """Write a file where a message says so, and answer after that."""
    newest = next(one for one in reversed(request.messages) if one["role"] == "user")
    _, asked, text = str(newest["content"]).partition("<records>")[0].partition("write: ")
    if not asked or request.messages[-1]["role"] == "tool":
        return text_reply("done")
    given = {"op": "write", "name": "list.md", "text": text.strip()}
    return tool_call_reply(("files_manage", given))


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    async with session_host(folder, ScriptedModel(turn), files_mb=1) as host:
        yield host


async def prepare(folder: Path) -> str:
    """Send a file, write another twice, and ask for its words to be forgotten; return the confirmation."""
    async with home(folder) as host:
        blob = await FolderBlobs(folder / "blobs").put(LEASE.encode())
        file = Attachment("document", "lease.txt", "text/plain", len(LEASE), blob, LEASE)
        for number, text in enumerate((f"write: {FIRST}", f"write: {SECOND}", "look")):
            files = (file,) if text == "look" else ()
            sent = await host.channel.send(text, message_id=f"p{number}", attachments=files)
            await host.channel.wait_for_answer(sent)
        asked = await host.channel.send("/memory forget zqxbread", message_id="asked")
        await host.channel.wait_for_answer(asked)
        command: str = host.channel.answers[-1].buttons[0].command
        await host.bus.drain()
    return command


def shown(folder: Path) -> dict[str, str]:
    at = folder / SHOWN
    return {path.name: path.read_text() for path in at.iterdir()} if at.is_dir() else {}


def bytes_kept(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
async def test_a_kill_at_any_moment_leaves_each_file_whole_or_not_there(
    tmp_path: Path, act: str
) -> None:
    prepared = tmp_path / "prepared"
    confirmation = await prepare(prepared)
    command = confirmation if act == "forget" else act
    async for folder, at in killed("test_files_kill", prepared, command, most=many(15)):
        await finish(folder, command)
        assert shown(folder) == ACTS[act], at
        await check_traces(folder, act)


async def finish(folder: Path, command: str) -> None:
    """Open the home again: the platform repeats the message, and it comes to its end."""
    async with home(folder) as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        listed = await host.channel.send("/files", message_id="list")
        told = await host.channel.wait_for_answer(listed)
        await host.bus.drain()
    assert all(name in told for name in shown(folder)), told


async def check_traces(folder: Path, act: str) -> None:
    """Check that the disk has the bytes that tapes name, and that what ended left no word."""
    named: set[str] = set()
    async with home(folder) as host:
        for tape in await host.store.list_tapes():
            for entry in await host.tape(tape):
                named |= blobs_in(entry)
        said = str([entry.payload for entry in await host.tape(FOLDER)])
    assert bytes_kept(folder) == named
    gone = {"forget": ["zqxbread"], "/files delete list.md": ["milk"]}.get(act, [])
    assert not any(word in said for word in gone)
