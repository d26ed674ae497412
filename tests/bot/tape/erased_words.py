"""Tapes in files that hold a secret word, and where in the files it is still found."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tape_files import opened, pack_all, says

from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
SECRET = "xylographqzw"
"""A word that is nowhere else, and that no stemmer cuts; each text has it with a number."""

_MEMBER = b"\x1f\x8b\x08"


def tombstone(entry: TapeEntry) -> TapeEntry:
    return replace(entry, payload={"role": "user", "content": ""}, meta={"erased": True})


def bytes_below(folder: Path) -> dict[str, bytes]:
    """All bytes of all files, and what of them can be unpacked behind."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            unpacked = []
            for match in re.finditer(re.escape(_MEMBER), raw):
                with suppress(zlib.error):
                    unpacked.append(zlib.decompressobj(31).decompress(raw[match.start() :]))
            found[path.name] = b"".join([raw, *unpacked]).lower()
    return found


def traces(folder: Path, word: str = SECRET) -> list[str]:
    """Files that hold any fragment of a word: a term may be cut where another begins alike."""
    data = bytes_below(folder)
    assert data
    fragments = {word[i : i + 6].encode() for i in range(len(word) - 5)}
    return sorted(
        name for name, raw in data.items() if any(fragment in raw for fragment in fragments)
    )


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in verify_folder(folder, "").problems]


async def secrets(store: FileTapeStore) -> list[TapeEntry]:
    return [entry for entry in await store.read(TAPE) if SECRET in repr(entry)]


async def erase_all(store: FileTapeStore) -> int:
    return await store.erase(TAPE, [tombstone(entry) for entry in await secrets(store)])


async def tell(store: FileTapeStore, number: int, count: int = 40) -> None:
    await store.create_tape(TAPE)
    said = [
        says(f"{SECRET}{number}x{place} and tea" if place % 8 == 3 else f"plain words {place}")
        for place in range(count)
    ]
    await store.append_many(TAPE, said[: count // 2])
    for entry in said[count // 2 :]:
        await store.append(TAPE, entry)


async def found(store: FileTapeStore, words: str) -> list[int]:
    hits = await store.search(SearchQuery(words, limit=1_000))
    return sorted(hit.entry.id for hit in hits if hit.direct)


async def laid_out(folder: Path) -> None:
    """A packed segment, a raw one, a live part, and an index of them all."""
    async with opened(folder) as store:
        await tell(store, 1, 120)
        await store.archive(TAPE)
    await pack_all(folder)
    async with opened(folder) as store:
        await tell(store, 2)
        await store.archive(TAPE)
        await tell(store, 3)
        assert await found(store, f"{SECRET}3x3")
    assert len(traces(folder)) == 4
