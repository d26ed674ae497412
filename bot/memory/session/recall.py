"""Recall: search the zone, facts, history and tape for what was said before.

Every passage carries its date, its speaker and its entry's id, so that an answer can be checked.
Entries on the tape are found and ranked by the store's search and, if there are vectors, by
meaning. Facts and lines of the zone, which are few, are scored by the share of the query's word
stems that they contain, weighted by rarity; scripts without spaces are compared by pairs of
characters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import zip_longest

from bot.core.text import split_quotations
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.records.attachments import attachments_in
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import sender_text
from bot.memory.records.fact import Evidence
from bot.memory.records.pasted_text import pasted_parts
from bot.memory.records.transcript import (
    format_timestamp_day,
    message_author,
    sender_name,
    sent_time,
    speaker_label,
)
from bot.memory.session.hybrid_search import search_tape
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.relative_dates import resolve_relative_dates
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry
from bot.tape.index.terms import telling_terms
from bot.tape.search import MAX_QUERY_LENGTH, Hit, SearchQuery
from bot.tape.service import TapeService

_SHOWN = 400
_CANDIDATES, _MOST_CANDIDATES = 4, 100
"""Hits fetched per passage, and in all."""

_UNSHARED = 0.3
"""Score of the best hit if no passage shares a word with the query."""

_FOUND = frozenset({"message", "event"})
_ANY_DAYS = 36_500
_OWN_NAMES = frozenset({"memory", "note", "history", "tapebot"})


@dataclass(frozen=True, slots=True)
class RecalledPassage:
    """A search result.

    Attributes:
        when: Date, and time if known, in the user's time zone; empty for long-term memory.
        who: A person's name, ``tapebot``, ``memory``, ``note``, ``history``, ``file:`` with a
            file's name, or ``quoted:`` with the name of the person who quoted.
        text: The words.
        entry: Id of the tape entry; None for the zone and facts.
        score: Rank; higher is better.
        evidence: References to the entries that a fact rests on.
        outdated: Whether a fact that rests on the entry has ended.
        fact: Number of the fact that it is, if it belongs to the session's own scope, else 0.
    """

    when: str
    who: str
    text: str
    entry: int | None = None
    score: float = 0.0
    evidence: tuple[str, ...] = ()
    outdated: bool = False
    fact: int = 0

    def render(self) -> str:
        """Render the passage as one line, shortened if it is long."""
        text = " ".join(self.text.split())
        if len(text) > _SHOWN:
            text = text[:_SHOWN].rstrip() + "…"
        named = self.evidence if self.entry is None else (f"#{self.entry}",)
        reference = f" [{', '.join(named)}]" if named else ""
        when = f"{self.when}, " if self.when else ""
        outdated = " (some of it no longer holds)" if self.outdated else ""  # for the model
        return f"- {when}{self.who}{reference}{outdated}: {text}"


async def recall_passages(
    tape: TapeService,
    snapshot: MemorySnapshot,
    query: str | None,
    *,
    days: int,
    now: datetime,
    timezone: tzinfo | None,
    limit: int = 8,
    before: int | None = None,
    facts: Sequence[RecalledPassage] = (),
    vectors: VectorIndex | None = None,
    problem: str | None = None,
    files: Sequence[RecalledPassage] = (),
    outdated: Collection[int] = (),
    without_assistant: bool = False,
    at_hand: bool = False,
    quick: bool = False,
) -> list[RecalledPassage]:
    """Return the passages that fit a query, best first; without one, the newest of each kind.

    It searches the snapshot of the zone, facts and passages of files that the session may read, and one
    tape: entries of the last days, or of all if none of those match, below an id, and of a problem. Facts
    and the zone belong to all problems. What rests on entries in ``outdated`` holds no longer. For
    ``without_assistant``, ``at_hand`` and ``quick`` see ``SearchQuery``.
    """
    wanted = (query or "").strip()[:MAX_QUERY_LENGTH]
    meant = resolve_relative_dates(split_quotations(wanted)[1], now.astimezone(timezone).date())
    # What is before an id of the view needs no look at the newest entries.
    asking = await _asking(tape) if before is None else 0
    search = SearchQuery(
        f"{wanted} {meant}".rstrip(),
        kinds=_FOUND,
        problem=problem,
        last=before - 1 if before is not None else None,
        limit=limit if quick else min(_CANDIDATES * limit, _MOST_CANDIDATES),
        without_assistant=without_assistant,
        at_hand=at_hand,
        quick=quick,
    )
    passages: list[RecalledPassage] = []
    for many in (days, _ANY_DAYS) if days < _ANY_DAYS else (days,):
        since = now - timedelta(days=many)
        zone = _from_zone(snapshot, since.astimezone(timezone).date().isoformat(), facts)
        since_then = replace(search, since=since)
        hits = await search_tape(tape, since_then, asking=asking, vectors=vectors)
        if not wanted:
            return _newest_of_each([*zone, *_newest_first(hits, timezone)], limit)
        passages = _ranked([*zone, *files], hits, wanted, timezone, absolute=quick)
        direct = any(hit.direct for hit in hits)
        if passages and (direct or any(passage.entry is None for passage in passages)):
            break
    return [
        replace(passage, outdated=True) if passage.entry in outdated else passage
        for passage in passages[:limit]
    ]


def fitting_facts(
    facts: Sequence[RecalledPassage], query: str, limit: int
) -> list[RecalledPassage]:
    """Return the facts that share words with a query, best first; nothing else is searched."""
    passages = _from_zone(MemorySnapshot(), "", facts)
    shares = _shares(passages, query)
    found = sorted(passages, key=lambda passage: -shares[id(passage)])[:limit]
    return [replace(one, score=round(shares[id(one)], 3)) for one in found if shares[id(one)] > 0]


async def _asking(tape: TapeService) -> int:
    """Return the id of the newest user message, which asks and is not an answer."""
    async for entry in tape.read_back():
        if entry.kind == "message" and entry.payload.get("role") == "user":
            return entry.id
    return 0


def _newest_of_each(
    recalled_passages: Sequence[RecalledPassage], limit: int
) -> list[RecalledPassage]:
    """Return passages of memory, notes, history and messages in turn."""
    kinds: dict[str, list[RecalledPassage]] = {}
    for passage in recalled_passages:
        if passage.who.startswith("file:"):
            continue
        kind = passage.who if passage.who in ("memory", "note", "history") else "said"
        kinds.setdefault(kind, []).append(passage)
    turns = zip_longest(*kinds.values())
    return [passage for turn in turns for passage in turn if passage is not None][:limit]


def _newest_first(hits: Sequence[Hit], timezone: tzinfo | None) -> list[RecalledPassage]:
    found = (_from_entry(hit.entry, timezone) for hit in hits)
    return [passage for passage in found if passage is not None]


def _ranked(
    zone: Sequence[RecalledPassage],
    hits: Sequence[Hit],
    query: str,
    timezone: tzinfo | None,
    *,
    absolute: bool,
) -> list[RecalledPassage]:
    """Merge the zone's lines and the tape's hits into one ranking.

    The tape's order is kept: its best hit scores the best share of words among its hits, the others
    in proportion.
    """
    said = [(_from_entry(hit.entry, timezone), hit.score) for hit in hits]
    files = [one for hit in hits for one in _from_others(hit.entry, timezone)]
    texts = [passage for passage, _ in said if passage is not None]
    top = max((score for _, score in said), default=0.0)
    # Scores of a quick search need no comparison of texts, which would cost as much as the search.
    shares = {} if absolute and not (zone or files) else _shares([*zone, *files, *texts], query)
    best = max((shares.get(id(passage), 0.0) for passage in texts), default=0.0)
    scored = [(share, one) for one in (*zone, *files) if (share := shares[id(one)])]
    if not best and not (scored and any(hit.direct for hit in hits)):
        # Found by similar spelling, by date or by meaning, without a common word.
        best = _UNSHARED
    if absolute:
        best = top
    if top and best:
        # A repeated question shares its words but holds no answer.
        scored += [
            (best * score / top * (0.5 if _asks(passage) else 1.0), passage)
            for passage, score in said
            if passage is not None
        ]
    scored.sort(key=lambda item: -item[0])
    return [replace(passage, score=round(value, 3)) for value, passage in scored]


def word_shares(texts: Sequence[str], query: str) -> list[float]:
    """Return which share of a query's words each text holds, from 0 to 1; rare words weigh more."""
    wanted = set(telling_terms(query))
    bags = [set(telling_terms(text)) & wanted for text in texts]
    seen_in = Counter(word for bag in bags for word in bag)
    weight = {word: math.log(1 + len(bags) / (1 + seen_in[word])) + 0.1 for word in wanted}
    total = sum(weight.values()) or 1.0
    return [sum(weight[word] for word in bag) / total for bag in bags]


def _shares(passages: Sequence[RecalledPassage], query: str) -> dict[int, float]:
    """Return ``word_shares`` of passages, by ``id()``."""
    shares = word_shares([passage.text for passage in passages], query)
    return {id(passage): share for passage, share in zip(passages, shares, strict=True)}


def _asks(passage: RecalledPassage) -> bool:
    return passage.text.rstrip().endswith(("?", "？", "؟"))


def _from_zone(
    snapshot: MemorySnapshot, oldest: str, facts: Sequence[RecalledPassage]
) -> list[RecalledPassage]:
    """Return facts, lines of memory that are not facts, and notes."""
    told = {_same(fact.text): fact for fact in facts}
    passages = [*told.values()]
    passages += [
        RecalledPassage("", "memory", line)
        for line in memory_lines(f"{snapshot.long_term}\n{snapshot.shared}\n{snapshot.reference}")
        if _same(line) not in told
    ]
    for note in reversed(snapshot.dailies):
        if note.date >= oldest:
            lines = memory_lines(note.content)
            passages += [RecalledPassage(note.date, "note", line) for line in lines]
    return passages


def _same(text: str) -> str:
    """Return a key that is equal for two spellings of the same line."""
    return " ".join(text.split()).strip("-*• ").rstrip(".").casefold()


def _from_entry(entry: TapeEntry, timezone: tzinfo | None) -> RecalledPassage | None:
    when = _sent_minute(entry, timezone)
    if entry.kind == "event" and entry.name == HISTORY_EVENT:
        text = str(entry.data.get("entry", ""))
        return RecalledPassage(when[: len("2026-01-31")], "history", text, entry.id)
    if entry.kind != "message":
        return None
    text = sender_text(entry)
    if not text.strip():
        return None
    who = message_author(entry)
    if entry.payload.get("role") != "assistant" and who.lower() in _OWN_NAMES:
        who = f"user {who}"  # for the model
    return RecalledPassage(when, who, text, entry.id)


def _sent_minute(entry: TapeEntry, timezone: tzinfo | None) -> str:
    """Return date and time of an entry in a time zone, to the minute; empty if unknown."""
    moment = sent_time(entry)
    if moment is None:
        return ""
    # ``strftime`` takes longer.
    return moment.astimezone(timezone).isoformat(" ")[: len("2026-01-31 12:00")]


def _from_others(entry: TapeEntry, timezone: tzinfo | None) -> list[RecalledPassage]:
    """Return what a message quotes and its files contain, in pieces that are shown whole."""
    # A colon cannot occur in a person's name.
    texts = [(f"file:{file.name}", file.third_party_text) for file in attachments_in(entry.meta)]
    if entry.kind == "message" and entry.payload.get("role") == "user":
        content = str(entry.payload.get("content") or "")
        theirs = pasted_parts(content, sender_name(entry))
        texts += [(f"quoted:{speaker_label(entry)}", text) for text in theirs]
    if not texts:
        return []
    when = _sent_minute(entry, timezone)
    return [
        RecalledPassage(when, who, piece, entry.id)
        for who, text in texts
        for piece in passage_pieces(text)
        if piece
    ]


def passage_pieces(text: str) -> list[str]:
    """Join lines and cut them to the length of a passage."""
    pieces: list[str] = []
    for line in text.splitlines():
        plain = " ".join(line.split())
        if pieces and len(pieces[-1]) + len(plain) < _SHOWN:
            pieces[-1] = f"{pieces[-1]} {plain}".strip()
        else:
            pieces += [plain[at : at + _SHOWN] for at in range(0, len(plain), _SHOWN)]
    return pieces


def render_passages(passages: Iterable[RecalledPassage]) -> str:
    """Render passages, one line each."""
    # for the model
    return "\n".join(passage.render() for passage in passages) or "No matching records."


def recallable_facts(
    memory: LongTermMemory, timezone: tzinfo | None, *, untold: bool = False
) -> list[RecalledPassage]:
    """Return the session's and the workspace's facts; ``untold`` ones have no room in the zone."""
    snapshot = memory.zone.read()
    told = set(memory_lines(f"{snapshot.long_term}\n{snapshot.shared}")) if untold else set()
    # The source of a workspace fact is hidden: it may be a private chat.
    found = [(fact, True) for fact in memory.facts()]
    found += [(fact, False) for fact in memory.workspace.active()]
    return [
        RecalledPassage(
            format_timestamp_day(fact.valid_from, timezone),
            "memory",
            fact.told(timezone),
            evidence=tuple(_reference(one, memory.tape.name) for one in fact.evidence[-3:] if own),
            fact=fact.id if own else 0,
        )
        for fact, own in found
        if fact.told(timezone) not in told
    ]


def _reference(evidence: Evidence, tape: str) -> str:
    place = "" if evidence.tape == tape else evidence.tape
    return f"{place}#{evidence.entry}"
