"""Convert a tape to examples for training a chat model, one line per phase. Pure.

Rule 1: a phase ends where a boundary anchor starts the next; what the anchor keeps in view
    (``keep_from``) belongs to the next, so that no turn is split and nothing occurs twice.
Rule 2: messages are those of the view: edits in their places, queued messages where they joined,
    each tool call followed by its results. What was added to a single request (recalled passages)
    is not in a tape's view, and so not here.
Rule 3: an example has the system prompt of its first turn, starts with a user and ends with an
    answer; a phase without an answer gives none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.agent.context import default_context
from bot.llm.base import ChatMessage
from bot.memory.records.conversation_entries import (
    CONVERSATION_KINDS,
    is_overheard,
    is_queued,
    joined_message_ids,
    replaced_entry_id,
)
from bot.memory.records.prompt_escaping import replace_lone_surrogates
from bot.memory.records.turn_marks import turn_start
from bot.memory.session.state.context_window import MAX_OVERHEARD, WindowFold
from bot.tape.entries import SESSION_NEW, TapeEntry

_UNBOUND = 1 << 62


class Trajectories:
    """Convert a tape's entries in order to one line per finished phase.

    A line is ``{"messages": [...]}`` as in the chat fine-tuning format: roles ``system``, ``user``,
    ``assistant`` (with ``tool_calls``) and ``tool`` (with ``tool_call_id``).
    """

    def __init__(self) -> None:
        self._seen: list[TapeEntry] = []
        self._queued: dict[int, TapeEntry] = {}
        self._overheard: dict[int, TapeEntry] = {}
        self._edits: dict[int, TapeEntry] = {}
        self._prompts: list[TapeEntry] = []

    def take(self, entry: TapeEntry) -> Iterator[bytes]:
        """Add an entry; yield the phase that it ends, if any."""
        self._hear(entry)
        if entry.is_boundary:
            keep = entry.data.get("keep_from")
            yield from self._end(keep if type(keep) is int else entry.id)
        elif entry.kind == "system":
            self._prompts.append(entry)
        elif (old := replaced_entry_id(entry)) is not None:
            self._edits[old] = entry
        elif is_overheard(entry):
            self._overheard[entry.id] = entry
            if len(self._overheard) > MAX_OVERHEARD:
                del self._overheard[next(iter(self._overheard))]
        elif is_queued(entry):
            self._queued[entry.id] = entry
        elif entry.kind in CONVERSATION_KINDS or joined_message_ids(entry):
            self._seen.append(entry)

    def finish(self) -> Iterator[bytes]:
        """Yield the last phase."""
        yield from self._end(_UNBOUND)

    def _hear(self, entry: TapeEntry) -> None:
        """Keep overheard messages that a turn takes in; forget the others at the next turn."""
        for other in joined_message_ids(entry):
            if other in self._overheard:
                self._queued[other] = self._overheard.pop(other)
        began = turn_start(entry) is not None
        if began or (entry.kind == "anchor" and entry.name == SESSION_NEW):
            self._overheard.clear()

    def _end(self, before: int) -> Iterator[bytes]:
        """Yield the phase of the entries before an id, and forget it."""
        phase = [entry for entry in self._seen if entry.id < before]
        window = WindowFold(
            _UNBOUND, _UNBOUND, entries=phase, queued=self._queued, edits=self._edits
        )
        messages = _example(default_context(window, whole=True))
        if messages:
            prompt = self._prompt(phase[0].id, before)
            head = [{"role": "system", "content": prompt}] if prompt else []
            line = json.dumps({"messages": [*head, *messages]}, ensure_ascii=False)
            yield replace_lone_surrogates(line).encode() + b"\n"
        self._seen = [entry for entry in self._seen if entry.id >= before]
        # A message may wait across the boundary for a turn that takes it in.
        joined = {i for entry in phase for i in joined_message_ids(entry)}
        self._queued = {i: entry for i, entry in self._queued.items() if i not in joined}
        self._edits = {
            old: entry
            for old, entry in self._edits.items()
            if old >= before or old in self._queued or old in self._overheard
        }
        earlier = [entry for entry in self._prompts if entry.id < before]
        self._prompts = [*earlier[-1:], *[entry for entry in self._prompts if entry.id >= before]]

    def _prompt(self, first: int, before: int) -> str:
        """Return the first system prompt of a phase; without one the last before it.

        A prompt is written after the message that it is for.
        """
        earlier = [entry for entry in self._prompts if entry.id < before]
        own = [entry for entry in earlier if entry.id > first]
        entries = (own or earlier[-1:])[:1]
        return str(entries[0].payload.get("content") or "") if entries else ""


def _example(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """Return the messages from the first user message to the last answer."""
    roles = [message["role"] for message in messages]
    first = roles.index("user") if "user" in roles else len(roles)
    last = len(messages)
    while last > first and (roles[last - 1] != "assistant" or messages[last - 1].get("tool_calls")):
        last -= 1
    return [dict(message) for message in messages[first:last]]
