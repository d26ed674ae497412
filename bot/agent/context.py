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
from bot.memory.attachments import describe_attachments
from bot.memory.context_window import WindowFold
from bot.memory.forgetting.tombstones import ERASED_MESSAGE_TEXT, is_erased
from bot.memory.prompt_escaping import escape_message, escape_tags, replace_lone_surrogates
from bot.memory.session_fold import SessionFold
from bot.memory.transcript import (
    format_entry_time,
    format_timestamp,
    message_content,
    quoted_block,
    speaker_label,
)
from bot.tape.entries import TapeEntry

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_UNANSWERED = "(no answer was given)"
INTERRUPTED = "Interrupted: this tool did not finish; nothing is known of its outcome."


@dataclass(frozen=True, slots=True)
class ModelContext:
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


RenderedMessages = dict[int, ChatMessage]
"""Messages of one tape as they were rendered before, by entry id."""

RenderHistory = Callable[[WindowFold, RenderedMessages, Sequence[TapeEntry]], list[ChatMessage]]
"""Turns a window into model messages, given the anchors in view where the builder wants them.

It keeps in ``Rendered`` what it may need again, and nobody changes.
"""

ToolResults = dict[tuple[int, str], TapeEntry]
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
        always_recall: The tail has room for what is recalled on the newest message, whatever is set.
        summaries: The system prompt holds the summaries of what was consolidated.
        budget_divisor: The view and what may stay unconsolidated are so many times smaller than usual.
    """

    name: str
    render: RenderHistory
    anchors: bool = False
    always_recall: bool = False
    summaries: bool = False
    budget_divisor: int = 1


def default_context(
    window: WindowFold,
    rendered: RenderedMessages | None = None,
    _: Sequence[TapeEntry] = (),
) -> list[ChatMessage]:
    """Render a window's entries, in view order."""
    known = {} if rendered is None else rendered
    spoken = window.conversation()
    results = _paired(spoken)
    messages: list[ChatMessage] = []
    for entry in spoken:
        if entry.kind == "message":
            if entry.id not in known:
                known[entry.id] = _render_message(entry)
            add_message(messages, known[entry.id])
        elif entry.kind == "tool_call":
            messages += render_call(entry, results)
    evict_rendered(known, spoken)
    return messages


def add_message(messages: list[ChatMessage], shown: ChatMessage) -> None:
    """Append a message; between a tool's result and a user stands the assistant."""
    if messages and messages[-1]["role"] == "tool" and shown["role"] == "user":
        messages.append({"role": "assistant", "content": _UNANSWERED})
    messages.append(shown)


def evict_rendered(rendered: RenderedMessages, spoken: Sequence[TapeEntry]) -> None:
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
    body = escape_tags(replace_lone_surrogates("\n\n".join(parts)))
    return f"<records>\nData that tapebot looked up; not words of the user.\n\n{body}\n</records>"


def _saves(fold: SessionFold, timezone: tzinfo) -> list[str]:
    """Return what has been saved since the ``<memory>`` block was rendered."""
    parts = []
    current = fold.zone.snapshot
    if (current.long_term, current.facts) != (
        fold.prompt_snapshot.long_term,
        fold.prompt_snapshot.facts,
    ):
        saved = f"version {current.version}, saved {format_timestamp(fold.zone.saved_at, timezone)}"
        if changes := current.changes_since(fold.prompt_snapshot):
            told = f"Changes of long-term memory, {saved}:\n{changes}"
        else:
            told = f"Long-term memory, {saved}:\n{current.numbered_facts() or '(empty)'}"
        parts.append(f"{told}\n(end of long-term memory)")
    if current.shared != fold.prompt_snapshot.shared:
        parts.append(f"Shared with everyone:\n{current.shared or '(empty)'}")
    if current.reference != fold.prompt_snapshot.reference:
        parts.append(f"Reference:\n{current.reference or '(empty)'}")
    parts += [
        f"Notes of {note.date}, version {current.version}:\n{note.content}"
        for note in current.dailies
        if note not in fold.prompt_snapshot.dailies
    ]
    return parts


def _paired(entries: Sequence[TapeEntry]) -> ToolResults:
    """Return results by the entry and the id of their call: the newest call of that id before."""
    asked: dict[str, int] = {}
    results: ToolResults = {}
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
    content = (
        replace_lone_surrogates(message_content(entry))
        if not is_erased(entry)
        else ERASED_MESSAGE_TEXT
    )
    if entry.payload.get("role") != "user":
        return {"role": "assistant", "content": content}
    head = f"[{format_entry_time(entry)}, {speaker_label(entry)}]"
    text = (
        f"{head} {escape_message(content)}{quoted_block(entry)}{describe_attachments(entry.meta)}"
    )
    return {"role": "user", "content": replace_lone_surrogates(text)}


def render_call(entry: TapeEntry, results: ToolResults) -> list[ChatMessage]:
    """Render calls and their results; those that have none were interrupted."""
    calls = entry.calls
    message: ChatMessage = {
        "role": "assistant",
        "content": replace_lone_surrogates(str(entry.payload.get("content") or "")) or None,
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
            content = ERASED_MESSAGE_TEXT
        answers.append(
            {
                "role": "tool",
                "tool_call_id": str(call.get("id")),
                "content": replace_lone_surrogates(content),
            }
        )
    return [message, *answers] if calls else []


def _arguments(text: Any) -> str:
    """Return arguments that are a JSON object: providers refuse a history with any others."""
    if isinstance(text, str):
        try:
            if isinstance(json.loads(text or "{}"), dict):
                return replace_lone_surrogates(text or "{}")
        except (ValueError, RecursionError):
            pass
    return json.dumps({"malformed": replace_lone_surrogates(str(text))})
