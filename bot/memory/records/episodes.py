"""Episodes on tapes: read entries as episodes, build episode entries, and parse episode ids.

Rule 1: an entry is one episode or none; turns, steps, commands, receipts, prompts and the zone
    are none.
Rule 2: an entry whose words were erased stays an episode, and says only that it was erased.
Rule 3: an edit supersedes the message that it replaces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

from bot.core.errors import TapeNotFound
from bot.core.reasons import parse_reason
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.compartment_records import EpisodeEntry, EpisodeType
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.conversation_entries import replaced_entry_id
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import LOCAL_ONLY
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import sent_time
from bot.tape.entries import TapeEntry, event
from bot.tape.search import GENERAL_PROBLEM, MAX_HITS, Hit, SearchQuery, problem_of
from bot.tape.store import TapeStore

ERASED_CONTENT = {"erased": True}
"""Content of an episode whose words were erased."""

_RETRIEVING = frozenset({"memory_recall", "tape_search", "tape_anchors"})
_BEGINNING = datetime.fromtimestamp(0, UTC)
_TYPES: tuple[EpisodeType, ...] = get_args(EpisodeType)


def episode_from_entry(tape: str, entry: TapeEntry) -> EpisodeEntry | None:
    """Return an entry as an episode; None if it is not one.

    The content depends on the type. Turn: ``role`` and ``content``. Tool: ``tool`` with ``calls``
    or ``result``. Retrieval: ``tool`` and ``results``, a list of lines. Decision: ``decisions`` on
    facts, or the gate's ``decision``. Delta: ``decisions``, with the superseded texts (``from``)
    and the new ones (``to``). Summary: ``summary``. An appended episode keeps its own content.

    Args:
        tape: Name of the tape that holds it.
        entry: The entry.
    """
    found = _told(entry)
    if found is None:
        return None
    kind, content = found
    layer, tags = entry.meta.get("layer"), entry.meta.get("tags")
    problem = problem_of(entry)
    return EpisodeEntry(
        id=episode_id(tape, entry.id),
        timestamp=sent_time(entry) or _BEGINNING,
        problem_id=None if problem == GENERAL_PROBLEM else problem,
        hrm_layer=layer if isinstance(layer, str) else "",
        entry_type=kind,
        content=dict(ERASED_CONTENT) if is_erased(entry) else content,
        tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        supersedes=_superseded(tape, entry),
    )


def _superseded(tape: str, entry: TapeEntry) -> str | None:
    named = entry.meta.get("supersedes")
    if isinstance(named, str) and parse_episode_id(named) is not None:
        return named
    edited = replaced_entry_id(entry)
    return None if edited is None else episode_id(tape, edited)


def _told(entry: TapeEntry) -> tuple[EpisodeType, dict[str, Any]] | None:
    """Return the type and content of an entry as an episode; None if it is not one."""
    payload = entry.payload
    if entry.kind == "message":
        return "turn", {"role": payload.get("role"), "content": payload.get("content")}
    if entry.kind == "tool_call":
        return "tool", _calls(entry)
    if entry.kind == "tool_result":
        return _result(payload)
    if entry.is_boundary and (summary := boundary_summary(entry.data)):
        return "summary", {"summary": summary, "phase": entry.name}
    if entry.kind == "event":
        return _event(entry)
    return None


def _event(entry: TapeEntry) -> tuple[EpisodeType, dict[str, Any]] | None:
    data = entry.data
    if entry.name == EPISODE_EVENT:
        given, content = data.get("type"), data.get("content")
        known: EpisodeType = next(
            (episode_type for episode_type in _TYPES if episode_type == given), "decision"
        )
        return known, content if isinstance(content, dict) else {}
    if entry.name == HISTORY_EVENT:
        return "summary", {"summary": data.get("entry"), "range": data.get("range")}
    if entry.name == FACTS_EVENT:
        return _on_facts(data)
    if entry.name == BUS_EVENT and isinstance(data.get("decision"), dict):
        kept = ("decision", "signals", "by", "requested", "references", "patterns")
        return "decision", {name: data[name] for name in kept if name in data}
    return None


def _calls(entry: TapeEntry) -> dict[str, Any]:
    made = [{"tool": call.get("name"), "arguments": call.get("arguments")} for call in entry.calls]
    told: dict[str, Any] = {"tool": ", ".join(str(one["tool"]) for one in made), "calls": made}
    text = entry.payload.get("content")
    return {**told, "content": text} if text else told


def _result(payload: dict[str, Any]) -> tuple[EpisodeType, dict[str, Any]]:
    tool, text = str(payload.get("name")), str(payload.get("content") or "")
    status = payload.get("status")
    failed = {"status": status} if status not in (None, "ok") else {}
    if tool.replace(".", "_") in _RETRIEVING:
        return "retrieval", {"tool": tool, "results": text.splitlines(), **failed}
    return "tool", {"tool": tool, "result": text, **failed}


def _on_facts(data: dict[str, Any]) -> tuple[EpisodeType, dict[str, Any]]:
    """Return a batch of fact operations: a delta if it superseded any, else a decision."""
    given = data.get("ops")
    ops = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    kept = ("op", "text", "verdict")
    told: dict[str, Any] = {
        "by": data.get("author"),
        "decisions": [
            {**{name: op[name] for name in kept if name in op}, **_why(op), **_numbers(op)}
            for op in ops
        ],
    }
    done = [op for op in ops if _text(op.get("closed")) and op.get("op") == "supersede"]
    if not done:
        return "decision", told
    before, after = ([_text(one.get(place)) for one in done] for place in ("closed", "fact"))
    return "delta", {**told, "from": before, "to": after}


def _why(operation: dict[str, Any]) -> dict[str, str]:
    return {"reason": str(parse_reason(operation["reason"]))} if "reason" in operation else {}


def _numbers(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of the facts that an operation made and ended."""
    facts = {place: operation.get(place) for place in ("fact", "closed")}
    return {place: one.get("id") for place, one in facts.items() if isinstance(one, dict)}


def _text(fact: object) -> str:
    return str(fact.get("text") or "") if isinstance(fact, dict) else ""


EPISODE_EVENT = "episode"
"""Name of the event that holds an appended episode: ``{type, content}``."""


def episode_entry(
    kind: EpisodeType,
    content: dict[str, Any],
    *,
    problem: str = GENERAL_PROBLEM,
    layer: str = "",
    tags: list[str] | None = None,
    supersedes: str | None = None,
) -> TapeEntry:
    """Return an episode as a tape entry; see ``EpisodeEntry``."""
    meta: dict[str, Any] = {"problem": problem}
    meta |= {"layer": layer} if layer else {}
    meta |= {"tags": tags} if tags else {}
    meta |= {"supersedes": supersedes} if supersedes else {}
    return event(EPISODE_EVENT, {"type": kind, "content": content}, **meta)


def with_problem(entry: TapeEntry, problem: str) -> TapeEntry:
    """Return an entry tagged with a problem, unless it names one already.

    Entries of the general problem carry no tag.
    """
    given = entry.meta.get("problem", problem)
    if given != GENERAL_PROBLEM:
        return entry if given == entry.meta.get("problem") else entry.with_meta(problem=given)
    if "problem" not in entry.meta:
        return entry
    meta = {key: value for key, value in entry.meta.items() if key != "problem"}
    return TapeEntry(entry.id, entry.kind, entry.payload, meta)


def stamp_problem(entry: TapeEntry, compartments: Compartments) -> TapeEntry:
    """Return an entry tagged with the active problem, and with ``LOCAL_ONLY`` in a private one."""
    tagged = with_problem(entry, compartments.active_problem)
    if compartments.is_private(problem_of(tagged)):
        return tagged.with_meta(**{LOCAL_ONLY: True})
    return tagged


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
        entries = await store.read(place[0], place[1], place[1])
    except TapeNotFound:
        return None
    return (place[0], entries[0]) if entries else None


async def search_all(
    search: Callable[[SearchQuery], Awaitable[list[Hit]]], query: SearchQuery, first: int, last: int
) -> list[Hit]:
    """Return all hits in a range of ids: where one search gives too many, its halves are searched."""
    if first > last:
        return []
    hits = await search(replace(query, first=first, last=last, limit=MAX_HITS))
    if len(hits) < MAX_HITS or first == last:
        return hits
    middle = (first + last) // 2
    before = await search_all(search, query, first, middle)
    return before + await search_all(search, query, middle + 1, last)
