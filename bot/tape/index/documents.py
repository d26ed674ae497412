"""What is found of an entry: the texts that it is indexed by. Pure.

Rule 1: what was said is found by its own words; a long text and files, piece by piece.
Rule 2: an episode is found by the texts of its content, and is there where it has none.
Rule 3: bookkeeping is not found, nor what was asked of recall and recalled: it is there already.
Rule 4: an entry of any shape is read without an error; what is not as it should be is left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.tape.entries import NON_BOUNDARY_ANCHORS, TapeEntry
from bot.tape.index.labels import Labels, labels_of
from bot.tape.index.terms import tokenize, with_pairs

INDEXED_KINDS = ("message", "tool_call", "tool_result", "anchor", "event", "system")
"""Kinds by the number that stands for them in the index."""

ASSISTANT_SENDER = "assistant"
EPISODE = "episode"

_BOOKKEEPING = (
    "turn.",
    "loop.",
    "session.",
    "tape.",
    "consolidation.",
    "delivery",
    "command",
    "memory.long_term",
    "memory.daily",
    "memory.reference",
    "memory.bus",
    "memory.undone",
    "memory.cleared",
    "task.",
    "reply",
    "imported",
    "problem.",
    "working.",
    "shared.",
    "synthesis.",
    "gate.",
)
_RECALLED = frozenset(
    {
        "memory.recall",
        "memory_recall",
        "tape.search",
        "tape_search",
        "tape.anchors",
        "tape_anchors",
        "task.run",
        "task_run",
    }
)
_PIECE = 400
"""Terms of a piece: about what a person would call a passage."""

_OVERLAP = 40
"""Terms that a piece shares with the next: the longest phrase that is found anywhere."""

_EXTRAS = "¶"
"""Stands between a text's own terms and what was added, so that no phrase reaches across."""

_DATED = "§"
"""Begins a term for a part of an entry's date."""

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH_TERMS = tuple(tokenize(" ".join(_MONTHS)))
_SEASONS = {
    term: [_MONTH_TERMS[month - 1] for month in months]
    for months, named in (
        ((3, 4, 5), "spring frühling frühjahr printemps primavera"),
        ((6, 7, 8), "summer sommer verano verão"),
        ((9, 10, 11), "autumn herbst automne otoño autunno outono"),
        ((12, 1, 2), "winter hiver invierno inverno"),
    )
    for term in tokenize(named)
}


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of an entry.

    Attributes:
        entry: The entry's id.
        kind: Number of its kind.
        spoken: Whether it is the text of a message: one of a conversation's turns.
        ts: When it was said, in seconds since 1970; 0 where that is not known.
        sender: Platform's id and shown name; both empty where nobody said it.
        labels: What is written on it.
        length: Terms of its own.
        terms: By which it is found, separated by spaces.
    """

    entry: int
    kind: int
    spoken: bool
    ts: float
    sender: tuple[str, str]
    labels: Labels
    length: int
    terms: str


def documents_of(entry: TapeEntry) -> list[Document]:
    """Return the pieces of an entry, the text of a message first; empty where nothing is found."""
    kind, moment, sender = INDEXED_KINDS.index(entry.kind), _said_at(entry), sender_of(entry)
    labels = labels_of(entry)
    ts = moment.timestamp() if moment is not None else 0.0
    said = entry.kind == "message"
    added = (_EXTRAS, *_dates(entry, moment)) if said else ()
    pieces = [piece for text in _texts(entry) for piece in _pieces(tokenize(text))]
    if not pieces and (said or _is_episode(entry)):
        pieces = [[]]
    return [
        Document(
            entry=entry.id,
            kind=kind,
            spoken=said and place == 0,
            ts=ts,
            sender=sender,
            labels=labels,
            length=len(piece),
            terms=" ".join((*with_pairs(piece), *added)),
        )
        for place, piece in enumerate(pieces)
    ]


def fingerprint(document: Document) -> int:
    """Return what tells a document's terms from others."""
    return zlib.crc32(document.terms.encode())


def _pieces(terms: list[str]) -> list[list[str]]:
    """Return terms in pieces that overlap, so that a phrase is whole in one of them."""
    starts = range(0, max(1, len(terms) - _OVERLAP), _PIECE - _OVERLAP)
    return [terms[start : start + _PIECE] for start in starts] if terms else []


def sender_of(entry: TapeEntry) -> tuple[str, str]:
    """Return the platform's id and the shown name of who said an entry."""
    if entry.kind != "message":
        return ("", "")
    if entry.payload.get("role") == "assistant":
        return (ASSISTANT_SENDER, "")
    sender = entry.meta.get("sender")
    if isinstance(sender, dict):
        return (_clean(sender.get("id")), _clean(sender.get("name")))
    return (_clean(sender), "")


def date_terms(words: Iterable[str]) -> list[str]:
    """Return, for words of a question that may be parts of a date, the terms of such dates.

    A season's are those of its months, north of the equator.
    """
    found = dict[str, None]()
    for word in words:
        if word.isdecimal() and word.isascii() and len(word) in (1, 2, 4):
            found[f"{_DATED}{int(word)}"] = None
        elif word in _MONTH_TERMS or word in _SEASONS:
            found.update((f"{_DATED}{month}", None) for month in _SEASONS.get(word, [word]))
    return list(found)


def _dates(entry: TapeEntry, moment: datetime | None) -> tuple[str, ...]:
    if moment is None:
        return ()
    named = entry.meta.get("tz")
    try:
        local = moment.astimezone(ZoneInfo(named) if isinstance(named, str) else UTC)
    except (KeyError, ValueError, OSError, OverflowError):
        local = moment
    parts = (str(local.year), _MONTH_TERMS[local.month - 1], str(local.day))
    return tuple(f"{_DATED}{part}" for part in parts)


def _said_at(entry: TapeEntry) -> datetime | None:
    for stamp in (entry.meta.get("sent"), entry.meta.get("ts")):
        try:
            moment = datetime.fromisoformat(str(stamp))
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _texts(entry: TapeEntry) -> list[str]:
    """Return what an entry says, its main text first."""
    payload = entry.payload
    if entry.kind == "message":
        return [_text(payload.get("content")), *_files(entry.meta.get("attachments"))]
    if entry.kind == "tool_call":
        made = [call for call in entry.calls if _text(call.get("name")) not in _RECALLED]
        calls = (f"{call.get('name')} {call.get('arguments')}" for call in made)
        return [" ".join((_text(payload.get("content")), *calls))]
    if entry.kind == "tool_result":
        name = _text(payload.get("name"))
        return [] if name in _RECALLED else [f"{name} {_text(payload.get('content'))}"]
    if entry.kind == "system":
        return [_text(payload.get("content"))]
    if _is_episode(entry):
        return [" ".join(_leaves(entry.data.get("content")))]
    name = entry.name or ""
    if name in NON_BOUNDARY_ANCHORS or (entry.kind == "event" and name.startswith(_BOOKKEEPING)):
        return []
    return [" ".join((name.replace("/", " ").replace(".", " "), *_leaves(entry.data)))]


def _is_episode(entry: TapeEntry) -> bool:
    return entry.kind == "event" and entry.name == EPISODE


def _files(given: Any) -> Iterator[str]:
    """Yield names and texts of files; what a voice message says is the message itself."""
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict):
            read = "" if one.get("kind") == "voice" else _text(one.get("text"))
            yield f"{_text(one.get('name'))} {read}"


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts anywhere inside a value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _clean(value: Any) -> str:
    """Return text that SQLite can hold."""
    return str(value).encode("utf-8", "replace").decode() if value is not None else ""
