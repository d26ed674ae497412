"""Episode ids, which name the tape entries that a write rests on."""

from __future__ import annotations

from bot.core.errors import TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore


def episode_id(tape: str, entry: int) -> str:
    """Return the memory bus's id for a tape entry: ``tape#id``."""
    return f"{tape}#{entry}"


def parse_episode_id(text: str) -> tuple[str, int] | None:
    """Return the tape and entry id in an episode id; None if it is not one."""
    tape, _, number = text.rpartition("#")
    known = tape and number.isascii() and number.isdecimal() and len(number) < 19
    return (tape, int(number)) if known else None


async def entry_of(store: TapeStore, episode: str) -> tuple[str, TapeEntry] | None:
    """Return the tape and entry that an episode id names; None if there is none."""
    place = parse_episode_id(episode)
    if place is None:
        return None
    try:
        found = await store.read(place[0], place[1], place[1])
    except TapeNotFound:
        return None
    return (place[0], found[0]) if found else None
