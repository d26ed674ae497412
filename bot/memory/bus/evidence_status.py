"""What became of the episodes that beliefs rest on, and which of them are evidence of their own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence

from bot.core.errors import TapeNotFound
from bot.memory.bus.entries import EPISODE_EVENT
from bot.memory.bus.provenance import entry_of, episode_id, parse_episode_id
from bot.memory.facts.evidence import may_learn_from, sender_text, third_party_texts
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.stemming import stemmed_words
from bot.memory.turn_fold import REPLY
from bot.tape.entries import TapeEntry
from bot.tape.search import MAX_HITS, SearchQuery
from bot.tape.store import TapeStore

_LOOKED_BACK = 60
"""Entries before a message in which what it repeats is looked for."""

_REPEATED = 0.7
_RUN = 3
_STATEMENTS = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]?")


async def find_evidence_faults(
    store: TapeStore, episodes: Iterable[str], session: str
) -> dict[str, str]:
    """Return which episodes are no evidence any more, with what became of each.

    Args:
        store: Where tapes are.
        episodes: By id; what is no episode's id is left out.
        session: A tape on which they may have been superseded, beside their own.

    Raises:
        TapeError: A tape cannot be read.
    """
    found: dict[str, str] = {}
    places = {one: place for one in episodes if (place := parse_episode_id(one)) is not None}
    for one in places:
        read = await entry_of(store, one)
        if read is None:
            found[one] = "is missing"
        elif is_erased(read[1]):
            found[one] = "was erased"
    first: dict[str, int] = {}
    for tape, number in places.values():
        first[tape] = min(number, first.get(tape, number))
    if any(tape != session for tape in first):
        first[session] = 0
    for tape, after in first.items():
        async for entry in _episodes(store, tape, after + 1):
            old = entry.meta.get("supersedes")
            if isinstance(old, str) and old in places and old not in found:
                found[old] = f"was superseded by {episode_id(tape, entry.id)}"
    return found


async def _episodes(store: TapeStore, tape: str, first: int) -> AsyncIterator[TapeEntry]:
    """Yield a tape's events that are episodes, from an id on."""
    try:
        waiting = [(first, await store.version(tape))]
    except TapeNotFound:
        return
    while waiting:
        start, end = waiting.pop()
        if start > end:
            continue
        names = frozenset({EPISODE_EVENT})
        query = SearchQuery(tapes=(tape,), names=names, first=start, last=end, limit=MAX_HITS)
        hits = await store.search(query)
        if len(hits) < MAX_HITS or start == end:
            for hit in hits:
                yield hit.entry
        else:  # There may be more than one search gives.
            middle = (start + end) // 2
            waiting += [(start, middle), (middle + 1, end)]


async def ineligibility_reason(
    store: TapeStore, episode: str, known: Collection[str], session: str
) -> str:
    """Return why an episode is no new evidence of its own for something; empty where it is.

    It is where a person said it in words of their own, not while memory was paused, and not only
    repeating what they had just been shown: being recalled makes nothing surer.

    Args:
        store: Where tapes are.
        episode: Its id.
        known: Evidence that there is already.
        session: As for ``faults_in``.
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
    """Say whether a message only gives back what the assistant, a tool or a command had just told.

    What those asked does not count: an answer may take up a question's words.

    Args:
        entry: The message.
        before: What stands before it on its tape.
    """
    said = _runs(sender_text(entry))
    if not said:
        return bool(third_party_texts(entry))  # Nothing of it is their own.
    return any(
        len(said & _runs(statement)) >= _REPEATED * len(said)
        for text in map(_shown, before)
        for statement in _STATEMENTS.findall(text)
        if not statement.rstrip().endswith(("?", "？"))
    )


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return each three words of a text that follow each other; all of them where they are fewer."""
    words = stemmed_words(text)
    last = max(1, len(words) - _RUN + 1)
    return {tuple(words[at : at + _RUN]) for at in range(last)} if words else set()


def _shown(entry: TapeEntry) -> str:
    """Return the words of an entry that no person said; empty for a person's."""
    if entry.kind == "message":
        own = entry.payload.get("role") == "user"
        return "" if own else str(entry.payload.get("content") or "")
    if entry.kind == "tool_result":
        return str(entry.payload.get("content") or "")
    return str(entry.data.get("text") or "") if entry.name == REPLY else ""
