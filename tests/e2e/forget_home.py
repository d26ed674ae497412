"""A home whose model echoes and takes notes, and a conversation that leaves traces everywhere."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.app.traces import Traces
from bot.bus import Attachment, Sender
from bot.llm.base import ModelReply, ModelRequest
from bot.media.blobs import BlobStore
from bot.testing.host import Bounds, Host, session_host
from bot.testing.scripted_model import ScriptedModel, calls, says

CAT, AUNT, FILE, TOWN = "zqxmiau", "wvuanna", "kryptofeld", "Øksnesby"
BOB = Sender("8", "Bob")
CONFIRMATION = "confirmation"
"""Id of the message that confirms."""


def turn(request: ModelRequest) -> ModelReply:
    """Echo; look things up and take notes where a message asks for it."""
    newest = next(one for one in reversed(request.messages) if one["role"] == "user")
    text = str(newest["content"]).partition("<records>")[0]
    answered = request.messages[-1]["role"] == "tool"
    if "note" in text and not answered:
        return calls(("memory_daily", {"content": f"noted: {text[-80:]}"}), text="I note it.")
    if "look up" in text and not answered:
        return calls(("memory_recall", {"query": text[-60:]}))
    if "erase what" in text and not answered:
        return calls(("memory_forget", {"what": text.rpartition(" ")[2].strip(".")}))
    if answered and "forget yes" in str(request.messages[-1]["content"]):
        return says(str(request.messages[-1]["content"]))
    return says(f"You said: {text.strip()}\nAnything else?")


def consolidation(request: ModelRequest) -> ModelReply:
    """Write down all that was said; learn where somebody lives."""
    told = str(request.messages[-1]["content"])
    operations = [
        {
            "op": "add",
            "text": f"The user lives in {TOWN}.",
            "subject": "home",
            "evidence": [{"message": int(found[1]), "quote": f"I live in {TOWN}"}],
        }
        for found in re.finditer(rf"#(\d+) [^\n]*USER[^\n]*I live in {TOWN}", told)
    ]
    history = f"[2026-02-10 10:00] {' '.join(told.split())[-3000:]}"
    return calls(("save_memory", {"history_entry": history, "operations": operations[:1]}))


@asynccontextmanager
async def home(
    folder: Path, model: ScriptedModel | None = None, bounds: Bounds | None = None
) -> AsyncIterator[Host]:
    blobs = BlobStore(folder / "blobs")
    model = model or ScriptedModel(turn, consolidation=consolidation)
    made = session_host(
        folder,
        model,
        bounds=bounds or Bounds(group_context=10),
        traces=lambda bus: Traces(folder, bus, blobs).erase,
    )
    async with made as host:
        yield host


async def converse(host: Host, folder: Path) -> str:
    """Say things of which traces come to lie everywhere; return the name of a file that was sent."""
    channel = host.channel
    blob = await BlobStore(folder / "blobs").put(f"about {FILE}".encode())
    await channel.ask(f"remember that my cat is called {CAT.capitalize()}")
    await channel.ask(f"My aunt {AUNT.capitalize()} visits on Sunday.")
    attached = Attachment("document", f"{FILE}.txt", "text/plain", 9, blob, f"about {FILE}")
    await channel.answer_to(await channel.send(f"{AUNT} sent this", attachments=(attached,)))
    await channel.ask(f"note that {AUNT} brings cake, and {CAT} eats it")
    await channel.ask(f"look up {CAT}")
    await channel.ask(f"I live in {TOWN}.")
    for command in ("/memory", "/memory why 1", f"/memory search {AUNT}", "/memory export"):
        await channel.ask(command)
    await channel.answer_to(await channel.send("What was that?", quote=f"called {CAT}"))
    await channel.ask("/new")
    await host.until(lambda: any((folder / "tapes").glob("*.gz")))
    await channel.ask("/memory history")
    await channel.ask(f"look up {AUNT}")
    await channel.ask("It rains today.")
    return blob
