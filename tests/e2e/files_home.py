"""A home with kept files, and messages that change them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import ModelReply, ModelRequest
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

ACT = "act"
"""Id of the message that changes the files."""

LEASE, FIRST, SECOND, THIRD = "the rent is 950", "milk", "milk, zqxbread", "milk, eggs"
FOLDER = "files:person:fake:7"


def turn(request: ModelRequest) -> ModelReply:
    """Write a file where a message says so, and answer after that."""
    newest = next(one for one in reversed(request.messages) if one["role"] == "user")
    _, asked, text = str(newest["content"]).partition("<records>")[0].partition("write: ")
    if not asked or request.messages[-1]["role"] == "tool":
        return text_reply("done")
    given = {"do": "write", "name": "list.md", "text": text.strip()}
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
