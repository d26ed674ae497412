"""Build episode entries, and tag entries with their problem. Pure."""

from __future__ import annotations

from typing import Any

from bot.memory.bus.compartment_records import EpisodeType
from bot.tape.entries import TapeEntry, event
from bot.tape.search import GENERAL_PROBLEM

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
