"""A home whose model echoes and takes notes, and a conversation that leaves traces everywhere."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.bus import Attachment, Sender
from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import Model, ModelReply, ModelRequest
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import episode_entry
from bot.memory.records.fact_fold import FactFold, bus_entry
from bot.memory.session.state.session_fold import SessionFold
from bot.runtime.app.residual_files import ResidualFiles
from bot.tape.folding import fold_tape
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

CAT, AUNT, FILE, TOWN = "zqxmiau", "wvuanna", "kryptofeld", "Øksnesby"
SHIP = "qvørbital"
CHAT, PERSON = "fake:1", "person:fake:7"
BOB = Sender("8", "Bob")


def turn(request: ModelRequest) -> ModelReply:
    """Echo; look things up and take notes where a message asks for it."""
    newest = next(one for one in reversed(request.messages) if one["role"] == "user")
    text = str(newest["content"]).partition("<records>")[0]
    answered = request.messages[-1]["role"] == "tool"
    if "note" in text and not answered:
        return tool_call_reply(
            ("memory_daily", {"content": f"noted: {text[-80:]}"}), text="I note it."
        )
    if "look up" in text and not answered:
        return tool_call_reply(("memory_recall", {"query": text[-60:]}))
    if "erase what" in text and not answered:
        return tool_call_reply(("memory_forget", {"what": text.rpartition(" ")[2].strip(".")}))
    if answered and "Nothing is erased yet" in str(request.messages[-1]["content"]):
        return text_reply("Please confirm.")
    return text_reply(f"You said: {text.strip()}\nAnything else?")


def consolidation(request: ModelRequest) -> ModelReply:
    """Write down all that was said; learn where somebody lives."""
    told = str(request.messages[-1]["content"])
    operations = [
        {
            "op": "add",
            "text": f"The user lives in {TOWN}.",
            "about": "home",
            "quotes": [f"I live in {TOWN}"],
        }
        for found in re.finditer(rf"#(\d+) [^\n]*USER[^\n]*I live in {TOWN}", told)
    ]
    history = f"[2026-02-10 10:00] {' '.join(told.split())[-3000:]}"
    return tool_call_reply(("save_memory", {"history_entry": history, "changes": operations[:1]}))


@asynccontextmanager
async def home(
    folder: Path, model: Model | None = None, bounds: HostLimits | None = None
) -> AsyncIterator[Host]:
    blobs = FolderBlobs(folder / "blobs")
    model = model or ScriptedModel(turn, consolidation=consolidation)
    made = session_host(
        folder,
        model,
        bounds=bounds or HostLimits(group_context=10),
        traces=lambda bus: ResidualFiles(folder, bus, blobs).erase,
    )
    async with made as host:
        yield host


async def converse(host: Host, folder: Path) -> str:
    """Say things of which traces come to lie everywhere; return the name of a file that was sent."""
    channel = host.channel
    blob = await FolderBlobs(folder / "blobs").put(f"about {FILE}".encode())
    await channel.ask(f"remember: my cat is called {CAT.capitalize()}")
    await channel.ask(f"My aunt {AUNT.capitalize()} visits on Sunday.")
    attached = Attachment("document", f"{FILE}.txt", "text/plain", 9, blob, f"about {FILE}")
    await channel.wait_for_answer(await channel.send(f"{AUNT} sent this", attachments=(attached,)))
    await channel.ask(f"note that {AUNT} brings cake, and {CAT} eats it")
    await channel.ask(f"look up {CAT}")
    await channel.ask(f"I live in {TOWN}.")
    for command in ("/memory", "/memory why 1", f"/memory search {AUNT}", "/memory export"):
        await channel.ask(command)
    await channel.wait_for_answer(await channel.send("What was that?", quote=f"called {CAT}"))
    await channel.ask("/new")
    await host.wait_until(lambda: any((folder / "tapes").glob("*.gz")))
    await channel.ask("/memory history")
    await channel.ask(f"look up {AUNT}")
    await channel.ask("It rains today.")
    return blob


async def work(folder: Path) -> None:
    """Work on problems, set values and believe something, so that the memory bus holds a word everywhere."""
    async with home(folder) as host:
        ask = host.channel.ask
        await ask(f"remember: the {SHIP} sails on Sunday")
        await ask(f"The {SHIP} is large.")
        await ask(f"/reference set ferry The {SHIP} at nine")
        await ask(f"/reference set {SHIP}-line Harbour street")
        await ask("/reference set ferry The other one")
        await ask("/memory share 1")
        await ask(f"/reference set dock near the {SHIP}")
        await ask("/reference share dock")
        other = await host.channel.send("Hello", chat="2", sender=BOB, role="member")
        await host.channel.wait_for_answer(other)
        await ask(f"/problem new Tickets of the {SHIP}")
        await ask("Two of them, please.")
        for note in (f"must board the {SHIP}", f"ask when does the {SHIP} sail?", "ask how long?"):
            await ask(f"/problem note {note}")
        await ask(f"/problem note draft letter Dear crew of the {SHIP}")
        await ask("/problem switch general")
        await ask("/problem")
        await ask("/new")
        await host.wait_until(lambda: any((folder / "tapes").glob("*.gz")))
        await ask("It rains today.")
        await host.bus.drain()
        now = host.clock.now()
    store = FileTapeStore(folder / "tapes", sync=False, clock=ManualClock())
    heard = [one for one in await store.read(CHAT) if one.payload.get("role") == "user"]
    said = [one.id for one in heard if str(one.payload["content"]).startswith(("Two", "The "))]
    rests = ["1", *(f"{CHAT}#{one}" for one in said)]
    beliefs = [
        SynthesizedPattern("p1", "heuristic", {"text": f"{SHIP} is late."}, ["h1"], 0.8, now, now),
        SynthesizedPattern("p2", "policy", {"text": "Leave early."}, ["p1"], 0.8, now, now),
        SynthesizedPattern("p3", "policy", {"text": "Buy two."}, rests, 0.8, now, now),
    ]
    records = {"patterns": [one.as_json() for one in beliefs], "key": "beliefs"}
    gate = {"approved": True, "reason": f"as the {SHIP} was"}
    await store.append(PERSON, bus_entry({**records, "decision": gate}))
    content = {"text": f"The {SHIP} was late.", SHIP: [3]}
    labels = {"layer": SHIP, "tags": ["sea", SHIP]}
    await store.append(CHAT, episode_entry("decision", content, **labels))  # type: ignore[arg-type]
    # What was opened is kept.
    for tape, fold in ((CHAT, SessionFold), (PERSON, FactFold)):
        folded = await fold_tape(store, tape, fold)
        await folded.keep(folded.version, least=1)
    # Whoever searches has the index written.
    await store.search(SearchQuery(SHIP, tapes=(CHAT,)))
    await store.close()
