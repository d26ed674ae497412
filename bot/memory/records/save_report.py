"""The line in which ``memory.save`` reports what it wrote, and what a prompt says by it. Pure.

A prompt whose history shows the line need not tell these facts once more. Whoever reads it back may
misread a fact whose text looks like the line itself; ``MemorySnapshot.changes_since`` then tells the
fact, because it reads the line the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.patterns import LazyPattern
from bot.llm.base import ChatMessage

_SAVE_TOOL = "memory_save"
_LINE = LazyPattern(r"Saved to long-term memory \(version \d+\): (?P<items>[^\n]*)\.")
_NEXT_ITEM = LazyPattern(r"; (?=\[\d)")
_ENDED = LazyPattern(r"\[(?P<fact>\d{1,9})\] has ended")
_HELD = LazyPattern(r"\[(?P<fact>\d{1,9})\] (?P<text>.*)")
_INSTEAD = LazyPattern(r" \(in place of \[(?P<fact>\d{1,9})\]\)$")


def held_item(fact: int, text: str, ended: int | None = None) -> str:
    """Return a fact for the line; ``ended`` is the number of the fact that it replaces."""
    instead = "" if ended is None else f" (in place of [{ended}])"  # for the model
    return f"[{fact}] {text.rstrip('.')}{instead}"


def ended_item(fact: int) -> str:
    """Return a fact that has ended for the line."""
    return f"[{fact}] has ended"  # for the model


def report_line(version: int, items: Sequence[str]) -> str:
    """Return the line."""
    # for the model
    return f"Saved to long-term memory (version {version}): {'; '.join(items)}."


def reported_changes(messages: Sequence[ChatMessage]) -> Iterator[tuple[int, str]]:
    """Yield the changes of facts that the tool's results in a prompt report, in their order.

    Yields:
        The number of a fact with its text; with no text if the fact has ended.
    """
    calls: set[str] = set()
    for message in messages:
        if "tool_calls" in message:
            for call in message["tool_calls"] or ():
                if call["function"]["name"] == _SAVE_TOOL:
                    calls.add(str(call["id"]))
        elif calls and message["role"] == "tool" and str(message.get("tool_call_id")) in calls:
            content = message.get("content")
            if isinstance(content, str):
                yield from _read(content.partition("\n")[0])


def _read(line: str) -> Iterator[tuple[int, str]]:
    found = _LINE.fullmatch(line)
    for item in _NEXT_ITEM.split(found["items"]) if found else ():
        if ended := _ENDED.fullmatch(item):
            yield int(ended["fact"]), ""
        elif held := _HELD.fullmatch(item):
            text = held["text"]
            if instead := _INSTEAD.search(text):
                yield int(instead["fact"]), ""
                text = text[: instead.start()]
            yield int(held["fact"]), text
