"""What a write rests on: entries of tapes by their ids, as evidence."""

from __future__ import annotations

from collections.abc import Iterable

from bot.errors import TapeNotFound
from bot.memory.facts.citing import cite
from bot.memory.facts.fact import Evidence
from bot.memory.forgetting.tombstones import is_erased
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore


def episode_id(tape: str, entry: int) -> str:
    """Return the id by which an entry of a tape is known to the memory bus: ``tape#id``."""
    return f"{tape}#{entry}"


def parse_episode_id(text: str) -> tuple[str, int] | None:
    """Return the tape and the entry that an id names; None where it names none."""
    tape, _, number = text.rpartition("#")
    known = tape and number.isascii() and number.isdecimal() and len(number) < 19
    return (tape, int(number)) if known else None


async def entry_of(store: TapeStore, episode: str) -> tuple[str, TapeEntry] | None:
    """Return the entry that an id names, with its tape; None where there is none."""
    place = parse_episode_id(episode)
    if place is None:
        return None
    try:
        found = await store.read(place[0], place[1], place[1])
    except TapeNotFound:
        return None
    return (place[0], found[0]) if found else None


async def evidence_of(store: TapeStore, episodes: Iterable[str]) -> list[Evidence]:
    """Return as evidence what ids name, in order; what is not there, or was erased, is left out."""
    found = [await entry_of(store, one) for one in episodes]
    return [cite(*one) for one in found if one is not None and not is_erased(one[1])]
