"""Tape entries to model messages: the view. Pure; built anew each turn, never stored.

Rule 1: an entry is rendered the same way for ever; what is true of this turn alone is in the tail.
Rule 2: a tool call is followed at once by its results, paired by id; one that has none gets an
    "interrupted" result, so that no tape can wedge a session. A result without its call is left out.
Rule 3: a queued message stands where a turn took it in.
Rule 4: behind a tool's result comes the assistant, never at once a user: some providers refuse that.
Rule 5: text that is not the sender's own is marked as quoted.
Rule 6: files stand behind the text, in words; ``vision.py`` puts images beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from bot.llm.base import ChatMessage
from bot.memory.attachments import describe
from bot.memory.escaping import clean, escape_speech, escape_tags
from bot.memory.fold import SessionFold
from bot.memory.forgetting.tombstones import ERASED_MESSAGE, is_erased
from bot.memory.transcript import local_time, quoted, said, shown_time, speaker
from bot.memory.window import WindowFold
from bot.tape.entries import TapeEntry

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_UNANSWERED = "(no answer was given)"
INTERRUPTED = "Interrupted: this tool did not finish; nothing is known of its outcome."


@dataclass(frozen=True, slots=True)
class View:
    """What the model sees.

    Attributes:
        system: The system prompt.
        history: Rendered entries; grows at its end between cuts.
        tail: Records of this turn alone; empty where there are none.
    """

    system: str
    history: tuple[ChatMessage, ...]
    tail: str = ""

    def messages(self) -> list[ChatMessage]:
        """Return the messages of a request, the tail last of all."""
        messages: list[ChatMessage] = [{"role": "system", "content": self.system}, *self.history]
        if self.tail:
            # It joins the last message: some providers take no user message behind a tool's.
            last = messages[-1]
            messages[-1] = {**last, "content": _joined(last["content"], self.tail)}
        return messages


def _joined(content: Any, tail: str) -> Any:
    """Return a message's content with a text behind it, whether it is a text or a list of parts."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": f"\n\n{tail}"}]
    return f"{content}\n\n{tail}"


Rendered = dict[int, ChatMessage]
"""Messages of one tape as they were rendered before, by entry id."""

Render = Callable[[WindowFold, Rendered, Sequence[TapeEntry]], list[ChatMessage]]
"""Turns a window into model messages, given the anchors in view where the builder wants them.

It keeps in ``Rendered`` what it may need again, and nobody changes.
"""

Results = dict[tuple[int, str], TapeEntry]
"""Tool results by the entry and the id of their call."""


@dataclass(frozen=True, slots=True)
class ContextBuilder:
    """A way to make a model's context of a session.

    Between two cuts of the window its history only grows at the end; what it has beside that is in
    the system prompt, or in the tail.

    Attributes:
        name: In the settings, and in ``turn.start``.
        render: Makes the history.
        anchors: The history holds the anchors in view, the last boundary's first; so the system
            prompt does not tell of that one.
        recalls: The tail has room for what is recalled on the newest message, whatever is set.
        summaries: The system prompt holds the summaries of what was consolidated.
        share: The view and what may stay unconsolidated are so many times smaller than usual.
    """

    name: str
    render: Render
    anchors: bool = False
    recalls: bool = False
    summaries: bool = False
    share: int = 1


def default_context(
    window: WindowFold,
    rendered: Rendered | None = None,
    _: Sequence[TapeEntry] = (),
) -> list[ChatMessage]:
    """Render a window's entries, in view order."""
    known = {} if rendered is None else rendered
    spoken = window.spoken()
    results = _paired(spoken)
    messages: list[ChatMessage] = []
    for entry in spoken:
        if entry.kind == "message":
            if entry.id not in known:
                known[entry.id] = _render_message(entry)
            add_message(messages, known[entry.id])
        elif entry.kind == "tool_call":
            messages += render_call(entry, results)
    forget(known, spoken)
    return messages


def add_message(messages: list[ChatMessage], shown: ChatMessage) -> None:
    """Append a message; between a tool's result and a user stands the assistant."""
    if messages and messages[-1]["role"] == "tool" and shown["role"] == "user":
        messages.append({"role": "assistant", "content": _UNANSWERED})
    messages.append(shown)


def forget(rendered: Rendered, spoken: Sequence[TapeEntry]) -> None:
    """Drop what is no longer in view, once that is most of it."""
    if len(rendered) > 2 * len(spoken) + 16:
        for entry_id in rendered.keys() - {entry.id for entry in spoken}:
            del rendered[entry_id]


def records_tail(fold: SessionFold, timezone: tzinfo, extra: Sequence[str] = ()) -> str:
    """Return the volatile tail: saves since the block was rendered, and what a step adds.

    Args:
        fold: The session's state, of which the saves are known.
        timezone: The user's.
        extra: Recalled passages and hints of this step; its ``loop.step`` keeps them.
    """
    parts = [*_saves(fold, timezone), *extra]
    if not parts:
        return ""
    body = escape_tags(clean("\n\n".join(parts)))
    return f"<records>\nData that tapebot looked up; not words of the user.\n\n{body}\n</records>"


def _saves(fold: SessionFold, timezone: tzinfo) -> list[str]:
    """Return what has been saved since the ``<memory>`` block was rendered."""
    parts = []
    current = fold.zone.snapshot
    if (current.long_term, current.facts) != (fold.frozen.long_term, fold.frozen.facts):
        saved = f"version {current.version}, saved {shown_time(fold.zone.saved_at, timezone)}"
        if changes := current.changes_since(fold.frozen):
            told = f"Changes of long-term memory, {saved}:\n{changes}"
        else:
            told = f"Long-term memory, {saved}:\n{current.shown() or '(empty)'}"
        parts.append(f"{told}\n(end of long-term memory)")
    if current.shared != fold.frozen.shared:
        parts.append(f"Shared with everyone:\n{current.shared or '(empty)'}")
    if current.reference != fold.frozen.reference:
        parts.append(f"Reference:\n{current.reference or '(empty)'}")
    parts += [
        f"Notes of {note.date}, version {current.version}:\n{note.content}"
        for note in current.dailies
        if note not in fold.frozen.dailies
    ]
    return parts


def _paired(entries: Sequence[TapeEntry]) -> Results:
    """Return results by the entry and the id of their call: the newest call of that id before."""
    asked: dict[str, int] = {}
    results: Results = {}
    for entry in entries:
        if entry.kind == "tool_call":
            for call in entry.calls:
                asked[str(call.get("id"))] = entry.id
        elif entry.kind == "tool_result":
            call_id = str(entry.payload.get("call_id"))
            if call_id in asked:
                results.setdefault((asked[call_id], call_id), entry)
    return results


def _render_message(entry: TapeEntry) -> ChatMessage:
    content = clean(said(entry)) if not is_erased(entry) else ERASED_MESSAGE
    if entry.payload.get("role") != "user":
        return {"role": "assistant", "content": content}
    head = f"[{local_time(entry)}, {speaker(entry)}]"
    text = f"{head} {escape_speech(content)}{quoted(entry)}{describe(entry.meta)}"
    return {"role": "user", "content": clean(text)}


def render_call(entry: TapeEntry, results: Results) -> list[ChatMessage]:
    """Render calls and their results; those that have none were interrupted."""
    calls = entry.calls
    message: ChatMessage = {
        "role": "assistant",
        "content": clean(str(entry.payload.get("content") or "")) or None,
        "tool_calls": [
            {
                "id": str(call.get("id")),
                "type": "function",
                "function": {
                    "name": _NOT_IN_NAMES.sub("_", str(call.get("name")))[:64] or "unknown",
                    "arguments": _arguments(call.get("arguments")),
                },
            }
            for call in calls
        ],
    }
    answers = []
    for call in calls:
        result = results.get((entry.id, str(call.get("id"))))
        content = str(result.payload.get("content", "")) if result is not None else INTERRUPTED
        if result is not None and is_erased(result):
            content = ERASED_MESSAGE
        answers.append(
            {"role": "tool", "tool_call_id": str(call.get("id")), "content": clean(content)}
        )
    return [message, *answers] if calls else []


def _arguments(text: Any) -> str:
    """Return arguments that are a JSON object: providers refuse a history with any others."""
    if isinstance(text, str):
        try:
            if isinstance(json.loads(text or "{}"), dict):
                return clean(text or "{}")
        except (ValueError, RecursionError):
            pass
    return json.dumps({"malformed": clean(str(text))})
