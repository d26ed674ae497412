"""Decide when to consolidate, and up to which entry. Pure.

Rule 1: due at ``window`` unconsolidated messages, or above a limit of tokens, or when a boundary
    moved unconsolidated messages out of view.
Rule 2: the newest quarter stays in view, and always the newest turn: a prompt that begins anew is
    read at the full price, and each message in view is paid for with each prompt.
Rule 3: messages of a problem that was left count as out of view, unless they are few.
Rule 4: a range ends where a user's turn begins, so that no turn is split.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.memory.records.conversation_entries import (
    entry_tokens,
    joined_message_ids,
    starts_turn,
    switched_problem,
)
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry

_FEW = 8
_KEPT = 4
"""Divisor of the limits, which gives what stays in view."""


@dataclass(frozen=True, slots=True)
class EntryRange:
    """A range of entry ids to consolidate, both ends included."""

    first: int
    last: int

    @property
    def text(self) -> str:
        """Both ends as text."""
        return f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """Limits of what may stay unconsolidated.

    Attributes:
        window: Number of messages.
        tokens: Estimated tokens of those messages.
        prompt_tokens: Prompt size in tokens, as the provider counts, above which consolidation is
            due.
    """

    window: int
    tokens: int
    prompt_tokens: int

    def due(self, fold: SessionFold) -> EntryRange | None:
        """Return the range to consolidate now; None if none is due or possible."""
        first = fold.window.consolidated_through + 1
        if (left := _left_behind(fold)) is not None:
            return EntryRange(first, left)
        if (
            fold.window.unconsolidated < self.window
            and fold.window.unconsolidated_tokens < self.tokens
            and not self._prompt_outgrown(fold)
        ):
            return None
        last = _older_part(fold.window, self.window // _KEPT, self.tokens // _KEPT)
        if (
            last is None
            and fold.boundary is not None
            and switched_problem(fold.boundary) is not None
        ):
            last = fold.boundary.id - 1
        return EntryRange(first, last) if last is not None and last >= first else None

    def _prompt_outgrown(self, fold: SessionFold) -> bool:
        """Return whether the prompt is near its limit because of history, not of its fixed part."""
        counted = fold.turns.last_prompt_tokens
        fixed = max(0, counted - fold.window.tokens)
        weighty = fold.window.unconsolidated_tokens * 4 >= self.tokens
        return weighty and counted >= self.prompt_tokens and fixed * 2 < self.prompt_tokens


def _left_behind(fold: SessionFold) -> int | None:
    """Return the last id before a boundary that left messages unconsolidated."""
    boundary, window = fold.boundary, fold.window
    if boundary is None or boundary.id <= window.consolidated_through:
        return None
    keep = boundary.data.get("keep_from")
    first_kept = keep if type(keep) is int else boundary.id
    if window.first_id > first_kept:
        return None
    overheard = {entry.id for entry in window.overheard_messages()}
    waiting = [
        entry
        for entry in window.queued.values()
        if entry.id >= first_kept and entry.id not in overheard
    ]
    in_view = [
        entry
        for entry in (*window.entries_since(first_kept), *waiting)
        if entry.kind == "message" and "cause" not in entry.meta
    ]
    left = window.unconsolidated - len(in_view)
    # Switching back and forth must not cost a call each time: the messages come back into view.
    if left <= 0 or (switched_problem(boundary) is not None and left < _FEW):
        return None
    return first_kept - 1 if first_kept - 1 > window.consolidated_through else None


def _older_part(window: WindowFold, messages: int, tokens: int) -> int | None:
    """Return the last id of what is to leave the view; None if there is no place to cut.

    Args:
        window: The view.
        messages: The most messages that stay.
        tokens: The most tokens that stay.
    """
    left_messages = window.messages - window.resume_plan.messages
    left_tokens = window.tokens - window.resume_plan.tokens
    last = None
    for entry in window.entries:
        if starts_turn(entry) and entry.id > window.consolidated_through + 1:
            last = entry.id - 1
            if left_messages <= messages and left_tokens <= tokens:
                break
        for other in _spoken(window, entry):
            left_messages -= other.kind == "message"
            left_tokens -= entry_tokens(other)
    return last


def _spoken(window: WindowFold, entry: TapeEntry) -> list[TapeEntry]:
    if entry.kind == "event":
        return [window.queued[i] for i in joined_message_ids(entry) if i in window.queued]
    return [entry]
