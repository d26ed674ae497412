"""Recall: finds what was said before, in the zone, the history and the tape's newest part.

Every passage carries its date, who said it, and the id of its entry, so that an answer can be
checked. Scores are plain: the share of the question's words, weighted by rarity, with words cut to
their stems; scripts without spaces are compared by pairs of characters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import zip_longest

import anyio
import anyio.to_thread

from bot.memory.attachments import attachments
from bot.memory.guards import lines_of
from bot.memory.snapshot import HISTORY, MemorySnapshot
from bot.memory.transcript import recorded_at, said_at, speaker
from bot.memory.words import words_of
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

SCANNED = 5_000
"""How many entries back a recall looks."""

_SHOWN = 400
_ANY_DAYS = 36_500
_OWN_NAMES = frozenset({"memory", "note", "history", "tapebot"})


@dataclass(frozen=True, slots=True)
class Passage:
    """Something found.

    Attributes:
        when: Date, with time where it is known, in the user's zone; empty for memory itself.
        who: A person's name, ``tapebot``, ``memory``, ``note``, ``history``, or ``file:`` and a
            file's name.
        text: The words, cut where they are long.
        entry: Id of the tape entry; None for the zone.
        score: Higher is better.
    """

    when: str
    who: str
    text: str
    entry: int | None
    score: float

    def render(self) -> str:
        """Return it as one line of a record."""
        text = " ".join(self.text.split())
        if len(text) > _SHOWN:
            text = text[:_SHOWN].rstrip() + "…"
        reference = f" [#{self.entry}]" if self.entry is not None else ""
        when = f"{self.when}, " if self.when else ""
        return f"- {when}{self.who}{reference}: {text}"


async def recall(
    tape: TapeService,
    snapshot: MemorySnapshot,
    query: str | None,
    *,
    days: int,
    now: datetime,
    timezone: tzinfo | None,
    limit: int = 8,
) -> list[Passage]:
    """Return what fits the query best, best first; without one, the newest of each kind.

    Args:
        tape: Where to look; at most ``SCANNED`` entries back.
        snapshot: The memory zone.
        query: Words to look for.
        days: How far back; further where nothing fits.
        now: The current time.
        timezone: The user's, for dates.
        limit: Passages at most.
    """
    found = await _gather(tape, snapshot, now - timedelta(days=days), timezone)
    if query is None or not query.strip():
        return _newest_of_each(found, limit)
    ranked = await anyio.to_thread.run_sync(_rank, found, query, limit)
    if not ranked and days < _ANY_DAYS:
        return await recall(
            tape, snapshot, query, days=_ANY_DAYS, now=now, timezone=timezone, limit=limit
        )
    return ranked


async def _gather(
    tape: TapeService, snapshot: MemorySnapshot, since: datetime, timezone: tzinfo | None
) -> list[Passage]:
    """Return all passages since a time, memory first, then notes, then the tape's newest first."""
    found = _from_zone(snapshot, since.astimezone(timezone).date().isoformat())
    scanned = 0
    asking = True
    async for entry in tape.read_back():
        scanned += 1
        if asking and entry.kind == "message" and entry.payload.get("role") == "user":
            # The newest message is what asks; it holds no answer.
            asking = False
            continue
        recorded = recorded_at(entry)
        if scanned > SCANNED or (recorded is not None and recorded < since):
            break
        moment = said_at(entry)
        passage = _from_entry(entry, moment, timezone)
        if passage is not None:
            found.append(passage)
        found += _from_files(entry, moment, timezone)
    return found


def _newest_of_each(found: Sequence[Passage], limit: int) -> list[Passage]:
    """Return passages in turn: of memory, notes, history and what was said."""
    kinds: dict[str, list[Passage]] = {}
    for passage in found:
        if passage.who.startswith("file:"):
            continue
        kind = passage.who if passage.who in ("memory", "note", "history") else "said"
        kinds.setdefault(kind, []).append(passage)
    turns = zip_longest(*kinds.values())
    return [passage for turn in turns for passage in turn if passage is not None][:limit]


def _rank(found: Sequence[Passage], query: str, limit: int) -> list[Passage]:
    wanted = set(words_of(query))
    if not wanted:
        return []
    bags = [set(words_of(passage.text)) for passage in found]
    seen_in = Counter(word for bag in bags for word in bag & wanted)
    weight = {word: math.log(1 + len(bags) / (1 + seen_in[word])) + 0.1 for word in wanted}
    total = sum(weight.values())
    ranked = []
    for age, (passage, bag) in enumerate(zip(found, bags, strict=True)):
        matched = bag & wanted
        if matched:
            share = sum(weight[word] for word in matched) / total
            # A question that was asked before shares its words but holds no answer.
            asked = 0.5 if passage.text.rstrip().endswith(("?", "？", "؟")) else 1.0
            ranked.append((share * asked, -age, passage))
    ranked.sort(key=lambda item: (item[0], item[1]), reverse=True)
    return [
        Passage(one.when, one.who, one.text, one.entry, round(score, 3))
        for score, _, one in ranked[:limit]
    ]


def _from_zone(snapshot: MemorySnapshot, oldest: str) -> list[Passage]:
    found = [Passage("", "memory", line, None, 0.0) for line in lines_of(snapshot.long_term)]
    for note in reversed(snapshot.dailies):
        if note.date >= oldest:
            found += [
                Passage(note.date, "note", line, None, 0.0) for line in lines_of(note.content)
            ]
    return found


def _from_entry(
    entry: TapeEntry, moment: datetime | None, timezone: tzinfo | None
) -> Passage | None:
    when = moment.astimezone(timezone) if moment is not None else None
    if entry.kind == "event" and entry.name == HISTORY:
        text = str(entry.data.get("entry", ""))
        day = when.strftime("%Y-%m-%d") if when else ""
        return Passage(day, "history", text, entry.id, 0.0)
    if entry.kind != "message":
        return None
    text = str(entry.payload.get("content", ""))
    if not text.strip():
        return None
    who = "tapebot" if entry.payload.get("role") == "assistant" else speaker(entry)
    if entry.payload.get("role") != "assistant" and who.lower() in _OWN_NAMES:
        who = f"user {who}"
    return Passage(when.strftime("%Y-%m-%d %H:%M") if when else "", who, text, entry.id, 0.0)


def _from_files(
    entry: TapeEntry, moment: datetime | None, timezone: tzinfo | None
) -> list[Passage]:
    """Return what the files of a message say, in pieces that are shown whole."""
    when = moment.astimezone(timezone).strftime("%Y-%m-%d %H:%M") if moment is not None else ""
    return [
        # No person's name has a colon.
        Passage(when, f"file:{file.name}", piece, entry.id, 0.0)
        for file in attachments(entry.meta)
        for piece in _pieces(file.quotable)
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


def render_passages(passages: Iterable[Passage]) -> str:
    """Return passages as records, one a line."""
    return "\n".join(passage.render() for passage in passages) or "No matching records."
