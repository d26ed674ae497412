"""Turn an entry into documents: the texts by which a search finds it. Pure.

Rule 1: messages are found by their own words; long texts and attachments are split into pieces.
Rule 2: an episode is indexed by the texts of its content, and has a document even without any.
Rule 3: bookkeeping is not indexed, nor are calls of recall tools and their results, which repeat
    what is indexed already.
Rule 4: a section of a file is indexed by its text, its place and the file's name.
Rule 5: entries of any shape are read without an error; malformed fields are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.tape.entries import NON_BOUNDARY_ANCHORS, TapeEntry
from bot.tape.index.groups import Group, group_of
from bot.tape.index.terms import joined_compounds, tokenize, with_pairs

EPISODE = "episode"
FILE_TEXT = "file.text"

_BOOKKEEPING = tuple(
    "turn. loop. session. tape. consolidation. delivery command memory.long_term memory.daily "
    "memory.reference memory.bus memory.undone memory.cleared task. reply imported problem. working. "
    "shared. synthesis. gate. spent reserved settled budget. workspace. file.kept file.deleted "
    "file.restored".split()
)
"""Beginnings of the names of events that are not indexed."""

_RECALLED = frozenset(
    "memory.recall memory_recall tape.search tape_search tape.anchors tape_anchors task.run "
    "task_run".split()
)
"""Tools whose calls and results are not indexed."""

_PIECE = 400
"""Terms of a piece, about the length of a passage."""

_OVERLAP = 40
"""Terms that adjacent pieces share; also the longest phrase that is always found."""

EXTRAS = "¶"
"""Separates a text's own terms from added ones, so that no phrase spans both."""

_DATED = "§"
"""Prefix of terms for parts of an entry's date."""

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
    """A searchable piece of an entry.

    Attributes:
        spoken: Whether it is the text of a message, a turn of the conversation.
        ts: Unix time of the entry in seconds; 0 if unknown.
        group: The entry's group.
        length: Number of its own terms.
        terms: The terms that find it, separated by spaces.
    """

    spoken: bool
    ts: float
    group: Group
    length: int
    terms: str


def documents_of(entry: TapeEntry) -> list[Document]:
    """Return the documents of an entry, a message's text first; empty if nothing is searchable."""
    group, moment = group_of(entry), _said_at(entry)
    ts = moment.timestamp() if moment is not None else 0.0
    said = entry.kind == "message"
    texts = _texts(entry)
    pieces = [piece for text in texts for piece in _pieces(tokenize(text))]
    if not pieces and (said or _is_episode(entry)):
        pieces = [[]]
    dates = _dates(entry, moment) if said else ()
    # A hit is the entry, so it is enough if the first piece has them.
    compounds = [term for text in texts for term in joined_compounds(text)]
    extras = [(*compounds, *dates), *[dates] * (len(pieces) - 1)]
    return [
        Document(
            spoken=said and place == 0,
            ts=ts,
            group=group,
            length=len(piece),
            terms=" ".join((*with_pairs(piece), *((EXTRAS, *extra) if extra else ()))),
        )
        for place, (piece, extra) in enumerate(zip(pieces, extras, strict=False))
    ]


def _pieces(terms: list[str]) -> list[list[str]]:
    """Split terms into overlapping pieces, so that every phrase is complete in one of them."""
    starts = range(0, max(1, len(terms) - _OVERLAP), _PIECE - _OVERLAP)
    return [terms[start : start + _PIECE] for start in starts] if terms else []


def date_terms(words: Iterable[str]) -> list[str]:
    """Return date terms for those words of a query that may be parts of a date.

    A season gives the terms of its months in the northern hemisphere.
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
    """Return an entry's texts, its main text first."""
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
    if entry.kind == "event" and entry.name == FILE_TEXT:
        return [" ".join(_text(entry.data.get(key)) for key in ("name", "place", "text"))]
    name = entry.name or ""
    if name in NON_BOUNDARY_ANCHORS or (entry.kind == "event" and name.startswith(_BOOKKEEPING)):
        return []
    return [" ".join((name.replace("/", " ").replace(".", " "), *_leaves(entry.data)))]


def _is_episode(entry: TapeEntry) -> bool:
    return entry.kind == "event" and entry.name == EPISODE


def _files(given: Any) -> Iterator[str]:
    """Yield names and texts of attachments; a voice message's text is the message itself."""
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict):
            own = one.get("kind") == "voice" and not one.get("quoted")
            read = "" if own else _text(one.get("text"))
            yield f"{_text(one.get('name'))} {read}"


def _leaves(value: Any) -> Iterator[str]:
    """Yield all strings nested in a value."""
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
