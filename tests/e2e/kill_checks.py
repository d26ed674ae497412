"""What must hold of a session's tape, whatever was killed when; read from the files alone."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.zone_snapshot import ZoneFold
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, SESSION_NEW, TapeEntry
from bot.tape.stores.file import FileTapeStore

KEPT = re.compile(r"K[0-9A-F]{6}")
"""A word that the person asked to remember."""


async def read_tape(home: Path, session: str) -> list[TapeEntry]:
    """Return a tape's entries, from its segments and its live file."""
    store = FileTapeStore(home / "tapes", read_only=True)
    try:
        if session not in await store.list_tapes():
            return []
        return await store.read(session)
    finally:
        await store.close()


def check_lines(home: Path) -> None:
    """No line is torn but one that stands at the very end, or that a repair closed."""
    for path in (home / "tapes").glob("*.jsonl*"):
        if path.suffix not in (".jsonl", ".gz"):
            continue
        data = path.read_bytes()
        *whole, _ = (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")
        for raw in whole:
            assert raw.endswith(b"\x18") or json.loads(raw), path.name


def check_tape(entries: list[TapeEntry]) -> None:
    assert [entry.id for entry in entries] == list(range(1, len(entries) + 1)), "ids are not dense"
    _check_zones(entries)
    for before, after in pairwise(entries):
        assert after.name != SESSION_NEW or before.name == MEMORY_SEAL, "memory was not carried on"
    settled = Counter(inbound for end in _ends(entries) for inbound in end.data["inbound"])
    assert not _repeated(settled), f"answered twice: {_repeated(settled)}"
    heard = Counter(e.meta["inbound"] for e in entries if "inbound" in e.meta)
    assert not _repeated(heard), f"heard twice: {_repeated(heard)}"
    results = Counter(
        (e.meta["turn"], e.payload["call_id"]) for e in entries if e.kind == "tool_result"
    )
    assert not _repeated(results), f"calls that ran twice: {_repeated(results)}"


def _repeated(counted: Counter[Any]) -> list[Any]:
    return [one for one, times in counted.items() if times > 1]


def _ends(entries: list[TapeEntry]) -> Iterator[TapeEntry]:
    return filter(None, map(turn_end, entries))


def _zones(entries: list[TapeEntry]) -> Iterator[tuple[int, set[str], bool]]:
    """Yield each sealed zone: its version, the words kept in it, whether it holds no more."""
    fold = ZoneFold()
    for entry in entries:
        if fold.apply(entry):
            text = fold.snapshot.long_term
            yield (
                fold.snapshot.version,
                set(KEPT.findall(text)),
                fold.snapshot.left > 0,
            )


def _check_zones(entries: list[TapeEntry]) -> None:
    marks = [e for e in entries if e.kind == "anchor" and e.name in (MEMORY_OPEN, MEMORY_SEAL)]
    for opened, seal in zip(marks[::2], marks[1::2], strict=True):
        assert (opened.name, seal.name) == (MEMORY_OPEN, MEMORY_SEAL), f"a zone is torn: {opened}"
        assert opened.data == seal.data, f"a zone's versions differ: {opened}"
    last, held = 0, set[str]()
    undos = sum(e.name == "command" and e.data["arguments"].startswith("undo") for e in entries)
    for version, words, full in _zones(entries):
        assert version >= last, "a version went back"
        if held - words and not full:
            # A kill may come between what an undo takes back and the zone that shows it.
            undos -= 1
            assert undos >= 0, f"version {version} lost {held - words}"
        last, held = version, words
