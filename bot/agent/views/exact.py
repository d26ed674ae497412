"""The exact context builder: entries become messages with little added. Pure.

Rule 1: an anchor is an assistant message with its name and state; the last boundary comes first.
Rule 2: a message is its role and its words. Quotes and attachments follow them.
Rule 3: a result answers the call that it names; a result that names no pending call answers the
    first pending one.
Rule 4: an anchor comes before the next message or call, never at the end: providers do not answer
    an assistant message, and accept nothing between calls and their results.
Rule 5: as in every builder, calls have their results, and text cannot imitate a block of the
    prompt.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence

from bot.agent.context import (
    RenderedMessages,
    ToolResults,
    add_message,
    evict_rendered,
    render_call,
)
from bot.llm.base import ChatMessage
from bot.memory.records.attachments import describe_attachments
from bot.memory.records.prompt_escaping import escape_tags, replace_lone_surrogates
from bot.memory.records.tombstones import ERASED_MESSAGE_TEXT, is_erased
from bot.memory.records.transcript import (
    cause_label,
    is_automation,
    message_content,
    quoted_block,
)
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of
from bot.tape.service import TapeService

_CHUNK = 2_000


def exact_context(
    window: WindowFold, rendered: RenderedMessages, anchors: Sequence[TapeEntry]
) -> list[ChatMessage]:
    """Render a window's entries with the anchors among them.

    Args:
        window: The entries in view.
        rendered: Cache of rendered messages.
        anchors: Anchors in view: the last boundary first, the others by id.
    """
    spoken = window.conversation()
    results = _by_position(spoken)
    waiting = deque(entry for entry in anchors if not entry.is_boundary)
    held = [_anchor(entry) for entry in anchors if entry.is_boundary]
    messages: list[ChatMessage] = []
    for place in (*window.resumed, *window.entries):
        while waiting and waiting[0].id < place.id:
            held.append(_anchor(waiting.popleft()))
        for entry in window.conversation([place]):
            if entry.kind == "tool_result":
                continue
            messages += held
            held = []
            if entry.kind == "message":
                if entry.id not in rendered:
                    rendered[entry.id] = _message(entry)
                add_message(messages, rendered[entry.id])
            else:
                messages += _calls(entry, results)
    evict_rendered(rendered, spoken)
    return messages


def anchors_in_view(fold: SessionFold, anchors: Iterable[TapeEntry]) -> list[TapeEntry]:
    """Return the last boundary, and those of the given anchors that are in view, by id.

    Anchors of other problems than the active one are left out.
    """
    begins = [fold.boundary] if fold.boundary is not None else []
    return begins + [
        entry
        for entry in anchors
        if entry.kind == "anchor"
        and entry.id >= fold.window.first_id
        and not entry.is_boundary
        and problem_of(entry) == fold.problem
    ]


class AnchorReader:
    """Reads the anchors of a session's view, each entry once.

    Args:
        tape: The session's tape.
        fold: The session's state.
    """

    def __init__(self, tape: TapeService, fold: SessionFold) -> None:
        self._tape = tape
        self._fold = fold
        self._read = 0
        self._found: list[TapeEntry] = []

    async def read(self) -> list[TapeEntry]:
        """Return the anchors in view; reads only entries that are new since the last call."""
        first, last = max(self._read + 1, self._fold.window.first_id), self._fold.version
        while first <= last:
            through = min(last, first + _CHUNK - 1)
            entries = await self._tape.read_entries(first, through)
            self._found += (entry for entry in entries if entry.kind == "anchor")
            self._read, first = through, through + 1
        self._found = [entry for entry in self._found if entry.id >= self._fold.window.first_id]
        return anchors_in_view(self._fold, self._found)


def _anchor(entry: TapeEntry) -> ChatMessage:
    state = escape_tags(replace_lone_surrogates(json.dumps(entry.data, ensure_ascii=False)))
    name = escape_tags(replace_lone_surrogates(str(entry.name)))
    return {"role": "assistant", "content": f"[Anchor created: {name}]: {state}"}


def _message(entry: TapeEntry) -> ChatMessage:
    content = (
        replace_lone_surrogates(message_content(entry))
        if not is_erased(entry)
        else ERASED_MESSAGE_TEXT
    )
    if is_automation(entry):
        head = f"[{cause_label(entry)}, sent by tapebot, not by the user]"
        text = f"{head} {escape_tags(content)}{quoted_block(entry)}"
        return {"role": "user", "content": replace_lone_surrogates(text)}
    if entry.payload.get("role") != "user":
        return {"role": "assistant", "content": content}
    text = f"{escape_tags(content)}{quoted_block(entry)}{describe_attachments(entry.meta)}"
    return {"role": "user", "content": replace_lone_surrogates(text)}


def _calls(entry: TapeEntry, results: ToolResults) -> list[ChatMessage]:
    rendered = render_call(entry, results)
    return [
        {**message, "content": ""} if "tool_calls" in message else message for message in rendered
    ]


def _by_position(spoken: Sequence[TapeEntry]) -> ToolResults:
    """Return results by the entry id and the id of their call."""
    results: ToolResults = {}
    pending: list[tuple[int, str]] = []
    for entry in spoken:
        if entry.kind == "tool_call":
            pending = [(entry.id, str(call.get("id"))) for call in entry.calls]
        elif entry.kind == "tool_result" and pending:
            named = str(entry.payload.get("call_id"))
            place = next((at for at, one in enumerate(pending) if one[1] == named), 0)
            results.setdefault(pending.pop(place), entry)
    return results
