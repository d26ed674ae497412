"""A store whose index is built, kept up and searched while its tapes grow, until it is killed.

``python kill_index_host.py FOLDER ROUND SEED``. Out, one JSON object a line: ``{"tape", "id", "word"}`` for
each entry once its append has returned, ``{"wrong": …}`` where a search did not tell the truth.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import anyio

from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

TAPES = ("kill:1", "kill:2", "kill:3")


def emit(**event: Any) -> None:
    """Hand a line to whoever kills; what is in the pipe is there, whatever happens then."""
    os.write(1, json.dumps(event).encode() + b"\n")


class Host:
    """Writers and searchers on one store."""

    def __init__(self, store: FileTapeStore, round_: int, chance: random.Random) -> None:
        self._store = store
        self._round = round_
        self._chance = chance
        self._written: list[tuple[str, int, str]] = []
        self._number = 0

    async def write(self, tape: str) -> None:
        """Append without end; now and then seal what is live."""
        await self._store.create_tape(tape)
        while True:
            words = []
            for _ in range(self._chance.choice((1, 1, 3, 12))):
                self._number += 1
                words.append(f"r{self._round}w{self._number}")
            said = [message("user", f"{word} beside the harbour") for word in words]
            made = await self._store.append_many(tape, said)
            for entry, word in zip(made, words, strict=True):
                emit(tape=tape, id=entry.id, word=word)
                self._written.append((tape, entry.id, word))
            if self._chance.random() < 0.05:
                await self._store.archive(tape)

    async def search(self) -> None:
        """Ask without end for what was appended."""
        while True:
            await anyio.lowlevel.checkpoint()
            if self._written:
                tape, number, word = self._chance.choice(self._written)
                hits = await self._store.search(SearchQuery(text=word, limit=20))
                found = [
                    (hit.tape, hit.entry.id)
                    for hit in hits
                    if word in str(hit.entry.payload.get("content")).split()
                ]
                if found != [(tape, number)]:
                    emit(wrong=f"{word} of {tape} {number} is found at {found}")


async def run(folder: Path, round_: int, seed: int) -> None:
    """Do all of it at once."""
    store = FileTapeStore(folder, sync=False)
    host = Host(store, round_, random.Random(seed))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for tape in TAPES:
            tasks.start_soon(host.write, tape)
        for _ in range(2):
            tasks.start_soon(host.search)


if __name__ == "__main__":
    anyio.run(run, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
