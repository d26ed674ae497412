"""What the Markdown parser says, and small questions about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from channels.text import fence_info

_LONGEST_SHOWN = 200

Range = dict[str, int]
"""Where an event's source begins and ends: ``start`` and ``end``, in bytes of UTF-8."""

Event = tuple[Any, Range]


def events(source: str) -> list[Event]:
    """Return the parser's events, each with its place in the source."""
    import pyromark

    known = pyromark.Options
    options = (
        known.ENABLE_TABLES
        | known.ENABLE_STRIKETHROUGH
        | known.ENABLE_TASKLISTS
        | known.ENABLE_MATH
        | known.ENABLE_FOOTNOTES
    )
    found: Iterable[Any] = pyromark.events_with_range(source, options=options)
    return list(found)


def code(found: Iterable[Event]) -> Iterable[tuple[int, int]]:
    """Return where the source is code, in order."""
    for event, where in found:
        if not isinstance(event, dict):
            continue
        start = event.get("Start")
        if "Code" in event or (isinstance(start, dict) and "CodeBlock" in start):
            yield where["start"], where["end"]


def labels(found: Iterable[Event]) -> set[str]:
    """Return the names by which links and pictures find their addresses."""
    starts = (event.get("Start") for event, _ in found if isinstance(event, dict))
    tags = (tag.get("Link") or tag.get("Image") for tag in starts if isinstance(tag, dict))
    return {tag["id"].casefold() for tag in tags if tag}


def fence(kind: Any) -> tuple[str, str]:
    """Return a code block's language, and the code that stands beside its fence."""
    return fence_info(kind["Fenced"]) if isinstance(kind, dict) else ("", "")


def shown(url: str) -> str:
    """Return an address as a person can read it: those that hold a whole file are cut."""
    return url if len(url) <= _LONGEST_SHOWN else url[:_LONGEST_SHOWN] + "…"


def named(tag: Any) -> tuple[str, Any]:
    """Return a tag's name and what it carries."""
    if isinstance(tag, dict):
        ((kind, value),) = tag.items()
        return kind, value
    return tag, None
