"""Killed at any moment, with its index deleted at any moment, a store finds all that was acknowledged."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO

import pytest

from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

pytestmark = pytest.mark.slow

HOST = Path(__file__).with_name("kill_index_host.py")
KILLED = -9
SECONDS = 30.0
_SOME = 30


def words_of(entry: TapeEntry) -> list[str]:
    return str(entry.payload.get("content")).split()


@dataclass
class Killer:
    """Starts the host, kills it, and keeps account of what it acknowledged.

    Attributes:
        folder: Of the tapes.
        chance: Of all that is left to chance.
        longest: Seconds that it may work before a kill.
        owed: Tape and id by the one word that only this entry has.
        met: What happened, for the record.
    """

    folder: Path
    chance: random.Random
    longest: float
    owed: dict[str, tuple[str, int]] = field(default_factory=dict)
    met: Counter[str] = field(default_factory=Counter)
    _recent: list[str] = field(default_factory=list)
    _held: bytes = b""

    def round(self, number: int) -> None:
        """Start, let it work for a random time, kill."""
        if number % 4 == 1:
            self.delete("before the start")
        command = [sys.executable, str(HOST), str(self.folder), str(number)]
        with subprocess.Popen(
            [*command, str(self.chance.randrange(1 << 30))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            ready, *_ = select.select([child.stdout, child.stderr], [], [], SECONDS)
            assert ready, "it did nothing"
            seconds = self.chance.random() ** 2 * self.longest
            self._let_work(child.stdout, seconds, delete=number % 4 == 3)
            os.kill(child.pid, signal.SIGKILL)
            rest = self._held + child.stdout.read()
            errors = child.stderr.read().decode()
        assert child.returncode == KILLED, errors
        assert "Traceback" not in errors, errors
        for line in rest.split(b"\n")[:-1]:
            self._heard(json.loads(line))
        self.met["kills"] += 1

    def delete(self, when: str) -> None:
        """Delete the files of the index, in any order."""
        files = list(self.folder.glob("*.index.db*"))
        self.chance.shuffle(files)
        for path in files:
            path.unlink(missing_ok=True)
        self.met[f"deleted {when}"] += bool(files)

    async def check(self, *, everything: bool = False) -> None:
        """See that what was acknowledged is found, each entry once and where it is.

        Args:
            everything: All of it; else some of what was acknowledged since the last check.
        """
        store = FileTapeStore(self.folder, sync=False)
        try:
            for word in self.chance.sample(self._recent, min(_SOME, len(self._recent))):
                hits = await store.search(SearchQuery(text=word, limit=20))
                found = [(hit.tape, hit.entry.id) for hit in hits if word in words_of(hit.entry)]
                assert found == [self.owed[word]], word
            self._recent.clear()
            if everything:
                # Which of them a kill let begin is chance.
                begun = await store.list_tapes()
                assert {tape for tape, _ in self.owed.values()} <= set(begun)
                for tape in begun:
                    await self._check_whole(store, tape)
        finally:
            await store.close()

    async def _check_whole(self, store: FileTapeStore, tape: str) -> None:
        """See that the index holds each message of a tape once, and nothing else."""
        said = {e.id: words_of(e) for e in await store.read(tape) if e.kind == "message"}
        for first in range(1, max(said, default=0) + 1, 500):
            wanted = [number for number in said if first <= number < first + 500]
            for text in ("", "harbour"):
                hits = await store.search(
                    SearchQuery(
                        text=text,
                        tapes=(tape,),
                        kinds=frozenset({"message"}),
                        first=first,
                        last=first + 499,
                        limit=1_000,
                    )
                )
                assert sorted(hit.entry.id for hit in hits) == wanted
        for word, (on, number) in self.owed.items():
            assert on != tape or word in said[number]

    def _let_work(self, stdout: IO[bytes], seconds: float, *, delete: bool) -> None:
        """Read what it says for so long; delete its index under its feet meanwhile, if asked to."""
        self._held = b""
        end = monotonic() + seconds
        delete_at = end - seconds * self.chance.random() if delete else None
        while (left := end - monotonic()) > 0:
            if delete_at is not None and monotonic() >= delete_at:
                self.delete("while it ran")
                delete_at = None
            if select.select([stdout], [], [], min(left, 0.01))[0]:
                self._held += os.read(stdout.fileno(), 65_536)

    def _heard(self, event: dict[str, object]) -> None:
        assert "wrong" not in event, event
        self._recent.append(str(event["word"]))
        self.owed[str(event["word"])] = (str(event["tape"]), int(str(event["id"])))


async def kill_often(folder: Path, seed: int, kills: int, longest: float) -> None:
    killer = Killer(folder, random.Random(seed), longest)
    for number in range(kills):
        killer.round(number)
        # Otherwise the next start meets what this kill left.
        if killer.chance.random() < 0.4:
            await killer.check()
    await killer.check(everything=True)
    killer.delete("at the end")
    await killer.check(everything=True)
    sys.stdout.write(f"seed {seed}: {len(killer.owed)} entries, {dict(killer.met)}\n")
    assert killer.met["kills"] == kills
    assert len(killer.owed) > kills


async def test_killed_while_it_indexes_a_store_finds_all_that_was_acknowledged(tmp_path):
    await kill_often(tmp_path / "tapes", 1, 4, 0.15)
