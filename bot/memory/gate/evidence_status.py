"""Check whether episodes still hold as evidence, and whether an episode is new evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence

from bot.core.errors import TapeNotFound
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.memory.records.episodes import (
    EPISODE_EVENT,
    entry_of,
    episode_id,
    parse_episode_id,
    search_all,
)
from bot.memory.records.event_names import REPLY
from bot.memory.records.evidence import may_learn_from, sender_text, third_party_texts
from bot.memory.records.tombstones import is_erased
from bot.tape.entries import TapeEntry
from bot.tape.index.terms import telling_terms
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore

_LOOKED_BACK = 60
"""Entries before a message that are checked for text that it repeats."""

_REPEATED = 0.7
_RUN = 3
_STATEMENTS = LazyPattern(r"[^.!?。！？\n]+[.!?。！？\n]?")


async def find_evidence_faults(
    store: TapeStore, episodes: Iterable[str], session: str
) -> dict[str, str]:
    """Return which episodes are no longer valid evidence, and why, by id.

    Their own tapes and the session's may supersede them.

    Raises:
        TapeError: A tape cannot be read.
    """
    found: dict[str, str] = {}
    places = {
        episode: place for episode in episodes if (place := parse_episode_id(episode)) is not None
    }
    for one in places:
        read = await entry_of(store, one)
        if read is None:
            found[one] = Reason("evidence_missing", evidence=one)
        elif is_erased(read[1]):
            found[one] = Reason("evidence_erased", evidence=one)
    first: dict[str, int] = {}
    for tape, number in places.values():
        first[tape] = min(number, first.get(tape, number))
    if any(tape != session for tape in first):
        first[session] = 0
    for tape, after in first.items():
        async for entry in _episodes(store, tape, after + 1):
            old = entry.meta.get("supersedes")
            if isinstance(old, str) and old in places and old not in found:
                by = episode_id(tape, entry.id)
                found[old] = Reason("evidence_superseded_by", evidence=old, by=by)
    return found


async def _episodes(store: TapeStore, tape: str, first: int) -> AsyncIterator[TapeEntry]:
    """Yield a tape's appended episodes from an id on."""
    try:
        last = await store.version(tape)
    except TapeNotFound:
        return
    names = frozenset({EPISODE_EVENT})
    for hit in await search_all(store.search, SearchQuery(tapes=(tape,), names=names), first, last):
        yield hit.entry


async def ineligibility_reason(
    store: TapeStore, episode: str, known: Collection[str], session: str
) -> str:
    """Return why an episode is not new evidence beside ``known`` evidence; empty if it is.

    New evidence is a person's own words, sent while memory was not paused, that do not merely
    repeat what they had just been shown. Recall makes nothing more certain.
    """
    if episode in known:
        return "it is known already"
    read = await entry_of(store, episode)
    if read is None:
        return "there is no such entry"
    tape, entry = read
    if is_erased(entry):
        return "its words were erased"
    if not may_learn_from(entry):
        return "it holds no person's own words that may be learned from"
    if episode in await find_evidence_faults(store, [episode], session):
        return "something else took its place"
    before = await store.read(tape, max(1, entry.id - _LOOKED_BACK), entry.id - 1)
    return "it repeats what had just been shown" if is_repetition(entry, before) else ""


def is_repetition(entry: TapeEntry, before: Sequence[TapeEntry]) -> bool:
    """Say whether a message only repeats what the assistant, a tool or a command said just before it.

    Questions do not count: an answer may repeat a question's words.
    """
    said = _runs(sender_text(entry))
    if not said:
        return bool(third_party_texts(entry))  # The message consists of quotations only.
    return any(
        len(said & _runs(statement)) >= _REPEATED * len(said)
        for text in map(_shown, before)
        for statement in _STATEMENTS.findall(text)
        if not statement.rstrip().endswith(("?", "？"))
    )


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return all runs of three consecutive words in a text; a shorter text is one run."""
    words = telling_terms(text)
    last = max(1, len(words) - _RUN + 1)
    return {tuple(words[at : at + _RUN]) for at in range(last)} if words else set()


def _shown(entry: TapeEntry) -> str:
    """Return an entry's text if no person wrote it, else an empty string."""
    if entry.kind == "message":
        own = entry.payload.get("role") == "user"
        return "" if own else str(entry.payload.get("content") or "")
    if entry.kind == "tool_result":
        return str(entry.payload.get("content") or "")
    return str(entry.data.get("text") or "") if entry.name == REPLY else ""
