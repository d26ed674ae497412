"""The line in which ``memory.save`` reports what it wrote, and what a prompt says by it. Pure.

A prompt whose history shows the line need not tell these facts once more. Whoever reads it back may
misread a fact whose text looks like the line itself; ``MemorySnapshot.changes_since`` then tells the
fact, because it reads the line the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from bot.core.patterns import LazyPattern
from bot.llm.base import ChatMessage

_SAVE_TOOL = "memory_save"
_LINE = LazyPattern(r"Saved: (?P<items>[^\n]*)\.")
_NEXT_ITEM = LazyPattern(r"; (?=\[\d)")
_ENDED = LazyPattern(r"\[(?P<fact>\d{1,9})\] has ended")
_HELD = LazyPattern(r"\[(?P<fact>\d{1,9})\] (?P<text>.*)")
_WORDED = LazyPattern(r"as change (?P<change>\d{1,3})")
_INSTEAD = LazyPattern(r" \(in place of \[(?P<fact>\d{1,9})\]\)$")


def held_item(fact: int, text: str, ended: int | None = None) -> str:
    """Return a fact for the line; ``ended`` is the number of the fact that it replaces."""
    instead = "" if ended is None else f" (in place of [{ended}])"  # for the model
    return f"[{fact}] {text.rstrip('.')}{instead}"


def worded(change: int) -> str:
    """Return what stands for the text of a change, whose call a prompt shows anyway.

    Args:
        change: Its place in the call, from 1.
    """
    return f"as change {change}"  # for the model


def ended_item(fact: int) -> str:
    """Return a fact that has ended for the line."""
    return f"[{fact}] has ended"  # for the model


def report_line(items: Sequence[str]) -> str:
    """Return the line."""
    return f"Saved: {'; '.join(items)}."  # for the model


def reported_changes(messages: Sequence[ChatMessage]) -> Iterator[tuple[int, str]]:
    """Yield the changes of facts that the tool's results in a prompt report, in their order.

    Yields:
        The number of a fact with its text; with no text if the fact has ended.
    """
    calls: dict[str, str] = {}
    for message in messages:
        if "tool_calls" in message:
            for call in message["tool_calls"] or ():
                if call["function"]["name"] == _SAVE_TOOL:
                    calls[str(call["id"])] = str(call["function"]["arguments"])
        elif message["role"] == "tool" and str(message.get("tool_call_id")) in calls:
            content = message.get("content")
            if isinstance(content, str):
                arguments = calls[str(message["tool_call_id"])]
                yield from _read(content.partition("\n")[0], arguments)


def _read(line: str, arguments: str) -> Iterator[tuple[int, str]]:
    found = _LINE.fullmatch(line)
    for item in _NEXT_ITEM.split(found["items"]) if found else ():
        if ended := _ENDED.fullmatch(item):
            yield int(ended["fact"]), ""
        elif held := _HELD.fullmatch(item):
            text = held["text"]
            if instead := _INSTEAD.search(text):
                yield int(instead["fact"]), ""
                text = text[: instead.start()]
            if as_change := _WORDED.fullmatch(text):
                text = _text_of_change(arguments, int(as_change["change"]))
            yield int(held["fact"]), text


def _text_of_change(arguments: str, number: int) -> str:
    """Return the text of a change in a call's arguments, as facts have it; "?" if it has none."""
    with suppress(ValueError, RecursionError, LookupError, TypeError, AttributeError):
        changes: Any = json.loads(arguments)["changes"]
        return plain_text(changes[number - 1]["text"]).rstrip(".")
    return "?"


def plain_text(text: str) -> str:
    """Return a model's sentence as a fact keeps it: on one line, without a list's mark."""
    return " ".join(text.split()).lstrip("-*• ")
