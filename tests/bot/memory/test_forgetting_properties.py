"""Whatever was said, learned, noted and listed: what is forgotten is in no file, and all else is as it was."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus.media.blobs import FolderBlobs
from bot.llm.base import ModelReply, ModelRequest
from bot.runtime.app.residual_files import ResidualFiles
from bot.tape.entries import TapeEntry
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)
from bot.transfer.tape_verification import verify_tape

pytestmark = pytest.mark.slow

MARKERS = ("zqxalpha", "Qvöbéta", "ЖщгаммаЫ", "wvu77delta", "鰐鱶鯨鮫")
STEPS = (
    *("I saw {m} today. It rains in Rome.", "remember: my cat is called {m}") * 2,
    *("NOTE {m} came by", "LOOK {m}", "CONCLUDE {m} is always late", "/memory add I own {m}"),
    *("/reference set key{n} near {m}", "/reference set {m} a place", "/memory share 1"),
    *(
        "/problem new About {m}",
        "/problem note ask where is {m}?",
        "/problem note draft x Dear {m}",
    ),
    *("/problem switch general", "/memory search {m}", "/memory", "/memory why 1", "/memory undo"),
    *("/new", "QUOTE {m} wrote so", "restart"),
)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from(MARKERS)), min_size=4, max_size=16
)
Places = dict[tuple[str, int], TapeEntry]


def _turn(request: ModelRequest) -> ModelReply:
    """Echo; take notes, look things up and conclude where a message asks for it."""
    newest = next(one for one in reversed(request.messages) if one["role"] == "user")
    text = str(newest["content"]).partition("<records>")[0].strip()
    wanted = re.search(r"(NOTE|LOOK|CONCLUDE) (.*)", text)
    if wanted is None or request.messages[-1]["role"] == "tool":
        return text_reply(f"You said: {text}\nAnything else?")
    return tool_call_reply(
        {
            "NOTE": ("memory_daily", {"content": wanted[2]}),
            "LOOK": ("memory_recall", {"query": wanted[2]}),
            "CONCLUDE": ("memory_save", {"changes": [{"op": "conclusion", "text": wanted[2]}]}),
        }[wanted[1]],
        text=f"I see: {wanted[2]}",
    )


def _consolidation(request: ModelRequest) -> ModelReply:
    told = " ".join(str(request.messages[-1]["content"]).split())
    return consolidation_reply(f"[2026-02-10 10:00] {told[-2_000:]}")


def held_in_files(folder: Path, word: str) -> Iterator[str]:
    """Yield the files that hold a word, packed ones unpacked, as it stands or as JSON escapes."""
    forms = {one for plain in (word, word.lower()) for one in (plain, json.dumps(plain)[1:-1])}
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if any(one.encode() in data for one in forms) or word in path.name:
            yield path.name


class Life:
    """A private chat in a folder, and what was said in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = ScriptedModel(_turn, consolidation=_consolidation)
        self._numbers = itertools.count(1)

    async def live(self, todo: list[tuple[str, str]], *, forget: str) -> None:
        left = [*todo, ("restart", ""), ("It rains today.", "")]
        while left:
            async with self._host() as host:
                while left and (step := left.pop(0))[0] != "restart":
                    await self._do(host, *step, number=len(left))
        async with self._host() as host:
            listed, before = await self._ask(host, "/memory"), await self._all(host)
            found = await self._forget(host, forget)
            after = await self._all(host)
            assert await self._forget(host, forget) == 0, "asked again, nothing is left"
            lines = [one for one in listed.splitlines() if re.match(r"\W*\d+", one)]
            kept = [one for one in lines if forget not in one]
            now = await self._ask(host, "/memory")
            assert [one for one in kept if one not in now] == []
            for tape in await host.store.list_tapes():
                assert (await verify_tape(host.store, tape)).problems == []
            await self._ask(host, "Hello")
            await host.bus.drain()
        self._check(before, after, forget)
        assert found == any(forget in str(one) for one in before.values())
        assert forget not in str(self.model.requests_for()[-1].messages)
        assert sorted(held_in_files(self.folder, forget)) == []

    def _host(self):
        blobs = FolderBlobs(self.folder / "blobs")
        made = lambda bus: ResidualFiles(self.folder, bus, blobs).erase  # noqa: E731
        return session_host(self.folder, self.model, traces=made)

    async def _do(self, host: Host, text: str, marker: str, *, number: int) -> None:
        text = text.replace("{m}", marker).replace("{n}", str(number % 3))
        quote = text.removeprefix("QUOTE ") if text.startswith("QUOTE") else None
        await self._ask(host, "What is that?" if quote else text, quote)

    async def _ask(self, host: Host, text: str, quote: str | None = None) -> str:
        number = f"n{next(self._numbers)}"
        sent = await host.channel.send(text, quote=quote, message_id=number)
        return await host.channel.wait_for_answer(sent)

    async def _all(self, host: Host) -> Places:
        tapes = await host.store.list_tapes()
        return {(tape, one.id): one for tape in tapes for one in await host.store.read(tape)}

    async def _forget(self, host: Host, word: str) -> bool:
        """Ask for it, confirm, and say whether there was anything to erase."""
        told = await self._ask(host, f"/memory forget {word}")
        number = re.search(r"/memory forget yes (\d+)", told)
        if number is not None:
            assert "Forgotten" in await self._ask(host, number[0])
        return number is not None

    def _check(self, before: Places, after: Places, forgotten: str) -> None:
        """What does not hold the word is to the letter what it was; all keeps its place, kind and time."""
        for place, entry in before.items():
            now = after[place]
            assert (now.kind, now.meta.get("ts"), now.meta.get("inbound")) == (
                entry.kind,
                entry.meta.get("ts"),
                entry.meta.get("inbound"),
            )
            own = entry.kind == "message" and entry.payload["role"] == "user"
            if own and forgotten not in f"{entry.payload}{entry.meta}":
                assert now.payload == entry.payload


def _live(todo: list[tuple[str, str]], forget: str) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(lambda: Life(Path(folder)).live(todo, forget=forget))


@settings(max_examples=examples(40))
@given(todo=steps, forget=st.sampled_from(MARKERS))
def test_what_is_forgotten_is_in_no_file_and_the_rest_is_as_it_was(todo, forget):
    _live(todo, forget)


def test_what_was_done_in_every_way_is_forgotten():
    once = dict.fromkeys(STEPS)
    _live([(step, MARKERS[0]) for step in once], MARKERS[0])
