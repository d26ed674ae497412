"""Recall: finds what was said before, in the zone, among the facts, in the history and on the tape.

Every passage carries its date, who said it, and the id of its entry, so that an answer can be checked.
What stands on the tape is found and ranked by the store's search, and by what it means where there are
vectors. Facts and the lines of the zone, which are few, are compared with it by plain scores: the share
of the question's words, weighted by rarity, with words cut to their stems; scripts without spaces are
compared by pairs of characters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import zip_longest

from bot.core.text import split_quotations
from bot.memory.attachments import attachments_in
from bot.memory.facts.evidence import sender_text
from bot.memory.facts.fact import Evidence
from bot.memory.hybrid_search import search_tape
from bot.memory.long_term_memory import LongTermMemory
from bot.memory.memory_validation import memory_lines
from bot.memory.pasted_text import pasted_parts
from bot.memory.relative_dates import resolve_relative_dates
from bot.memory.stemming import stemmed_words
from bot.memory.transcript import format_timestamp_day, sender_name, sent_time, speaker_label
from bot.memory.vector_index import VectorIndex
from bot.memory.zone_snapshot import HISTORY_EVENT, MemorySnapshot
from bot.tape.entries import TapeEntry
from bot.tape.search import MAX_QUERY_LENGTH, Hit
from bot.tape.service import TapeService

_SHOWN = 400
_CANDIDATES, _MOST_CANDIDATES = 4, 100
"""Hits that are looked at for each passage that is wanted, and in all."""

_UNSHARED = 0.3
"""Share of the question's words that stands for those that were only nearly found."""

_FOUND = frozenset({"message", "event"})
_ANY_DAYS = 36_500
_OWN_NAMES = frozenset({"memory", "note", "history", "tapebot"})


@dataclass(frozen=True, slots=True)
class RecallableFact:
    """A long-term fact of a scope that the session may read.

    Attributes:
        text: What is believed.
        when: Since when, as it is shown; empty where that is not known.
        evidence: Ids of the entries that it rests on, as they are shown: ``#12`` or ``telegram:1#12``.
        who: What it is shown as.
    """

    text: str
    when: str
    evidence: tuple[str, ...] = ()
    who: str = "memory"


@dataclass(frozen=True, slots=True)
class RecalledPassage:
    """Something found.

    Attributes:
        when: Date, with time where it is known, in the user's zone; empty for memory itself.
        who: A person's name, ``tapebot``, ``memory``, ``note``, ``history``, or ``file:`` and a
            file's name.
        text: The words, cut where they are long.
        entry: Id of the tape entry; None for the zone and for facts.
        score: Higher is better.
        evidence: Ids of the entries that a fact rests on.
    """

    when: str
    who: str
    text: str
    entry: int | None
    score: float
    evidence: tuple[str, ...] = ()

    def render(self) -> str:
        """Return it as one line of a record."""
        text = " ".join(self.text.split())
        if len(text) > _SHOWN:
            text = text[:_SHOWN].rstrip() + "…"
        named = self.evidence if self.entry is None else (f"#{self.entry}",)
        reference = f" [{', '.join(named)}]" if named else ""
        when = f"{self.when}, " if self.when else ""
        return f"- {when}{self.who}{reference}: {text}"


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
    facts: Sequence[RecallableFact] = (),
    vectors: VectorIndex | None = None,
    problem: str | None = None,
) -> list[RecalledPassage]:
    """Return what fits the query best, best first; without one, the newest of each kind.

    Args:
        tape: Where to look; no other tape is searched.
        snapshot: The memory zone.
        query: Words to look for.
        days: How far back; further where no word of the query is found.
        now: The current time.
        timezone: The user's, for dates.
        limit: Passages at most.
        before: Of the tape only entries with a lower id.
        facts: Of the scopes that the session may read.
        vectors: Of the tapes; None finds by words alone.
        problem: Of the tape only what belongs to this problem, ``general`` for what belongs to none; facts
            and the zone belong to all.
    """
    since = now - timedelta(days=days)
    wanted = (query or "").strip()[:MAX_QUERY_LENGTH]
    meant = resolve_relative_dates(split_quotations(wanted)[1], now.astimezone(timezone).date())
    zone = _from_zone(snapshot, since.astimezone(timezone).date().isoformat(), facts)
    hits = await search_tape(
        tape,
        f"{wanted} {meant}".rstrip(),
        kinds=_FOUND,
        limit=min(_CANDIDATES * limit, _MOST_CANDIDATES),
        since=since,
        before=before,
        asking=await _asking(tape),
        vectors=vectors,
        problem=problem,
    )
    if not wanted:
        return _newest_of_each([*zone, *_newest_first(hits, timezone)], limit)
    found = _ranked(zone, hits, wanted, timezone)
    by_words = any(hit.direct for hit in hits) or any(one.entry is None for one in found)
    if not (found and by_words) and days < _ANY_DAYS:
        return await recall_passages(
            tape,
            snapshot,
            query,
            days=_ANY_DAYS,
            now=now,
            timezone=timezone,
            limit=limit,
            before=before,
            facts=facts,
            vectors=vectors,
            problem=problem,
        )
    return found[:limit]


async def _asking(tape: TapeService) -> int:
    """Return the id of the newest message: it is what asks, and holds no answer."""
    async for entry in tape.read_back():
        if entry.kind == "message" and entry.payload.get("role") == "user":
            return entry.id
    return 0


def _newest_of_each(found: Sequence[RecalledPassage], limit: int) -> list[RecalledPassage]:
    """Return passages in turn: of memory, notes, history and what was said."""
    kinds: dict[str, list[RecalledPassage]] = {}
    for passage in found:
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
    zone: Sequence[RecalledPassage], hits: Sequence[Hit], query: str, timezone: tzinfo | None
) -> list[RecalledPassage]:
    """Return the zone's lines and what was found on the tape in one order.

    The tape's own order stands: its best hit has the share of words that the best among them has, the
    others in proportion.
    """
    said = [(_from_entry(hit.entry, timezone), hit.score) for hit in hits]
    files = [one for hit in hits for one in _from_others(hit.entry, timezone)]
    texts = [one for one, _ in said if one is not None]
    shares = _shares([*zone, *files, *texts], query)
    best = max((shares[id(one)] for one in texts), default=0.0)
    top = max((score for _, score in said), default=0.0)
    scored = [(shares[id(one)], one) for one in (*zone, *files) if shares[id(one)]]
    if not best and not (scored and any(hit.direct for hit in hits)):
        # Found by words spelt a little differently, by a date or by meaning: by no word that both have.
        best = _UNSHARED
    if top and best:
        # A question that was asked before shares its words but holds no answer.
        scored += [
            (best * score / top * (0.5 if _asks(one) else 1.0), one)
            for one, score in said
            if one is not None
        ]
    scored.sort(key=lambda item: -item[0])
    return [replace(one, score=round(value, 3)) for value, one in scored]


def _shares(passages: Sequence[RecalledPassage], query: str) -> dict[int, float]:
    """Return for each passage, by identity, the share of the question's words that it has."""
    wanted = set(stemmed_words(query))
    bags = [set(stemmed_words(passage.text)) & wanted for passage in passages]
    seen_in = Counter(word for bag in bags for word in bag)
    weight = {word: math.log(1 + len(bags) / (1 + seen_in[word])) + 0.1 for word in wanted}
    total = sum(weight.values()) or 1.0
    return {
        id(passage): sum(weight[word] for word in bag) / total
        for passage, bag in zip(passages, bags, strict=True)
    }


def _asks(passage: RecalledPassage) -> bool:
    return passage.text.rstrip().endswith(("?", "？", "؟"))


def _from_zone(
    snapshot: MemorySnapshot, oldest: str, facts: Sequence[RecallableFact]
) -> list[RecalledPassage]:
    """Return the facts, the lines of memory that are none of them, and the notes."""
    told = {_same(one.text): one for one in facts}
    found = [
        RecalledPassage(one.when, one.who, one.text, None, 0.0, one.evidence)
        for one in told.values()
    ]
    found += [
        RecalledPassage("", "memory", line, None, 0.0)
        for line in memory_lines(f"{snapshot.long_term}\n{snapshot.shared}\n{snapshot.reference}")
        if _same(line) not in told
    ]
    for note in reversed(snapshot.dailies):
        if note.date >= oldest:
            found += [
                RecalledPassage(note.date, "note", line, None, 0.0)
                for line in memory_lines(note.content)
            ]
    return found


def _same(text: str) -> str:
    """Return what two ways to write the same line have in common."""
    return " ".join(text.split()).strip("-*• ").rstrip(".").casefold()


def _from_entry(entry: TapeEntry, timezone: tzinfo | None) -> RecalledPassage | None:
    moment = sent_time(entry)
    when = moment.astimezone(timezone) if moment is not None else None
    if entry.kind == "event" and entry.name == HISTORY_EVENT:
        text = str(entry.data.get("entry", ""))
        day = when.strftime("%Y-%m-%d") if when else ""
        return RecalledPassage(day, "history", text, entry.id, 0.0)
    if entry.kind != "message":
        return None
    text = sender_text(entry)
    if not text.strip():
        return None
    who = "tapebot" if entry.payload.get("role") == "assistant" else speaker_label(entry)
    if entry.payload.get("role") != "assistant" and who.lower() in _OWN_NAMES:
        who = f"user {who}"
    return RecalledPassage(
        when.strftime("%Y-%m-%d %H:%M") if when else "", who, text, entry.id, 0.0
    )


def _from_others(entry: TapeEntry, timezone: tzinfo | None) -> list[RecalledPassage]:
    """Return what a message quotes and what its files say, in pieces that are shown whole."""
    moment = sent_time(entry)
    when = moment.astimezone(timezone).strftime("%Y-%m-%d %H:%M") if moment is not None else ""
    # No person's name has a colon.
    texts = [(f"file:{file.name}", file.third_party_text) for file in attachments_in(entry.meta)]
    if entry.kind == "message" and entry.payload.get("role") == "user":
        content = str(entry.payload.get("content") or "")
        theirs = pasted_parts(content, sender_name(entry))
        texts += [(f"quoted:{speaker_label(entry)}", text) for text in theirs]
    return [
        RecalledPassage(when, who, piece, entry.id, 0.0)
        for who, text in texts
        for piece in _pieces(text)
        if piece
    ]


def _pieces(text: str) -> list[str]:
    """Return lines joined and cut to what a passage shows."""
    pieces: list[str] = []
    for line in text.splitlines():
        plain = " ".join(line.split())
        if pieces and len(pieces[-1]) + len(plain) < _SHOWN:
            pieces[-1] = f"{pieces[-1]} {plain}".strip()
        else:
            pieces += [plain[at : at + _SHOWN] for at in range(0, len(plain), _SHOWN)]
    return pieces


def render_passages(passages: Iterable[RecalledPassage]) -> str:
    """Return passages as records, one a line."""
    return "\n".join(passage.render() for passage in passages) or "No matching records."


def recallable_facts(
    memory: LongTermMemory, timezone: tzinfo | None, *, untold: bool = False
) -> list[RecallableFact]:
    """Return what a session believes, and what everybody may read, for recall.

    Args:
        memory: The session's.
        timezone: The user's, for dates.
        untold: Only what the zone has no room for.
    """
    snapshot = memory.zone.read()
    told = set(memory_lines(f"{snapshot.long_term}\n{snapshot.shared}")) if untold else set()
    # Where something that everybody reads was said is nobody else's affair.
    found = [(fact, True) for fact in memory.facts()]
    found += [(fact, False) for fact in memory.workspace.active()]
    return [
        RecallableFact(
            fact.text,
            format_timestamp_day(fact.valid_from, timezone),
            tuple(_reference(one, memory.tape.name) for one in fact.evidence[-3:]) if own else (),
        )
        for fact, own in found
        if fact.text not in told
    ]


def _reference(evidence: Evidence, tape: str) -> str:
    place = "" if evidence.tape == tape else evidence.tape
    return f"{place}#{evidence.entry}"
