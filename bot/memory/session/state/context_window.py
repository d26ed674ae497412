"""Fold a tape into the entries in view, and count unconsolidated messages. Pure.

Rule 1: a boundary anchor starts a new window; entries from its ``keep_from`` on stay in view.
Rule 2: ``memory/consolidated`` starts it after ``through``, wherever that anchor is on the tape.
Rule 3: a window over its limits (messages, tokens) is cut to at most half of them. Cuts happen only
    when a turn starts, and only before a user's turn, so that the prompt keeps its prefix in
    between.
Rule 4: a message that arrived during a turn (``queued``) is placed where a turn took it in
    (``joined``), not where it arrived.
Rule 5: an overheard group message waits like a queued one. The next turn takes in the newest of
    them; the others never come into view.
    A reminder that was told during a turn (``meanwhile``) is placed behind its answer, or before the next turn.
Rule 6: an edit whose turn had not ended (``replaces``) takes the place of the edited message.
Rule 7: entries of other problems than the active one are not in view. On a switch back to a
    problem, its newest messages return, at the start of the view.
Rule 8: a child session (``session/fork``) answers none of its parent's messages.
Rule 9: all other entries are bookkeeping and not in the window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from bot.memory.records.conversation_entries import (
    CONVERSATION_KINDS,
    MEANWHILE,
    TURN_START,
    discards_overheard,
    entry_tokens,
    is_caused,
    is_overheard,
    is_queued,
    joined_message_ids,
    replaced_entry_id,
    starts_turn,
    switched_problem,
)
from bot.memory.records.record_json import RecordJson
from bot.tape.entries import MEMORY_CONSOLIDATED, SESSION_FORK, TapeEntry
from bot.tape.search import GENERAL_PROBLEM, problem_of

MAX_OVERHEARD = 200
"""Limit on waiting overheard messages; older ones are dropped."""

_UNBOUNDED = 1 << 62
_SHARE = 4
"""Divisor of a window's limits, which gives those of the entries that return with a problem."""
_NEAR = 512

_entry_id = attrgetter("id")


def visible_entries(
    entries: Sequence[TapeEntry], window: WindowFold, after: Sequence[TapeEntry] = ()
) -> list[TapeEntry]:
    """Return a range's visible entries: without messages no turn took in, edits applied.

    The window, and the entries ``after`` the range that may be out of view by now, tell of later turns
    and edits.
    """
    joined = {i for entry in (*entries, *after, *window.entries) for i in joined_message_ids(entry)}
    edits = {
        old: entry for entry in (*entries, *after) if (old := replaced_entry_id(entry)) is not None
    }
    edits |= window.edits
    return [
        edits.get(entry.id, entry)
        for entry in entries
        if replaced_entry_id(entry) is None and (entry.id in joined or not is_overheard(entry))
    ]


def _opens(spoken: Sequence[TapeEntry], place: int) -> bool:
    """Say whether a turn begins at a place among entries in view order, queued messages included."""
    entry = spoken[place]
    if starts_turn(entry):
        return True
    before = _role(spoken[place - 1]) if place else "assistant"
    return (_role(entry), before) == ("user", "assistant")


def _role(message: TapeEntry) -> str | None:
    """Return the role of a message; None for any other entry."""
    return message.payload.get("role") if message.kind == "message" else None


@dataclass(frozen=True, slots=True)
class ResumedEntries:
    """Entries that return to view when a problem becomes active again.

    Attributes:
        ids: Entry ids in view order.
        messages: Number of messages among them.
        tokens: Estimated tokens of all.
    """

    ids: tuple[int, ...] = ()
    messages: int = 0
    tokens: int = 0

    @classmethod
    def of_entries(cls, entries: Sequence[TapeEntry]) -> ResumedEntries:
        """Count entries for resumption."""
        messages = sum(entry.kind == "message" for entry in entries)
        tokens = sum(entry_tokens(entry) for entry in entries)
        return cls(tuple(entry.id for entry in entries), messages, tokens)

    @classmethod
    def from_json(cls, record: object) -> ResumedEntries:
        """Read it from JSON; return an empty one if the record is malformed."""
        return _RESUMED.read(record) or NO_RESUMED_ENTRIES


_RESUMED = RecordJson(ResumedEntries)
NO_RESUMED_ENTRIES = ResumedEntries()


@dataclass(slots=True)
class WindowFold:
    """The entries in view, and counts of what is not yet consolidated.

    Attributes:
        max_messages: Limit on messages in view, as the last turn recorded it.
        max_tokens: Limit on their estimated tokens.
        entries: Entries in tape order, with the events at which queued messages join.
        queued: Queued and overheard messages by id, joined or still waiting.
        edits: Edits by the id of the message that they replace.
        first_id: First id in view.
        consolidated_through: Last id that was consolidated.
        unconsolidated: Number of messages not yet consolidated.
        unconsolidated_tokens: Estimated tokens of those.
        problem: Id of the active problem.
        resume_plan: What returns to view with that problem, as its boundary says.
        resumed: The returned entries, once they were read.
    """

    max_messages: int = _UNBOUNDED
    max_tokens: int = _UNBOUNDED
    entries: list[TapeEntry] = field(default_factory=list)
    queued: dict[int, TapeEntry] = field(default_factory=dict)
    edits: dict[int, TapeEntry] = field(default_factory=dict)
    first_id: int = 1
    consolidated_through: int = 0
    unconsolidated: int = 0
    unconsolidated_tokens: int = 0
    messages: int = 0
    tokens: int = 0
    problem: str = GENERAL_PROBLEM
    resume_plan: ResumedEntries = field(default_factory=lambda: NO_RESUMED_ENTRIES)
    resumed: list[TapeEntry] = field(default_factory=list)
    # A turn asks for the conversation, and for what it answers, a dozen times between two entries. The
    # conversation grows with each message; whatever else changes it has it put together anew.
    _conversation: list[TapeEntry] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    _by_platform_id: dict[frozenset[str], list[TapeEntry]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        self._by_platform_id.clear()
        if entry.is_reset:
            # Nothing before a reset returns, and nothing of it gets consolidated.
            fresh = WindowFold(
                self.max_messages, self.max_tokens, first_id=entry.id, consolidated_through=entry.id
            )
            for slot in self.__slots__:
                setattr(self, slot, getattr(fresh, slot))
        if entry.kind in CONVERSATION_KINDS:
            self._add_spoken(entry)
        elif entry.is_boundary:
            keep = entry.data.get("keep_from")
            if self.first_id == 1:
                # A tape that starts as a copy of another may lack the switch itself.
                self.problem = problem_of(entry)
            # Entries dropped by an earlier cut do not return.
            self._drop_before(max(keep, self.first_id) if type(keep) is int else entry.id)
            self._switch(entry)
        elif entry.name == MEMORY_CONSOLIDATED and entry.kind == "anchor":
            self._consolidated(entry.data)
        elif joined_message_ids(entry):
            self._join(entry)
        self._leave_behind(entry)
        if entry.name == TURN_START and entry.kind == "event":
            self._bound(entry.data.get("bounds"))

    def _forget_order(self) -> None:
        self._conversation = None
        self._by_platform_id.clear()

    def conversation(self, entries: Sequence[TapeEntry] | None = None) -> list[TapeEntry]:
        """Return the conversation in view order, with queued messages where they joined.

        Args:
            entries: A part of ``self.entries``; by default all, preceded by resumed entries.
        """
        if entries is not None:
            return self._in_view_order([], entries)
        return list(self._in_view())

    def _in_view(self) -> list[TapeEntry]:
        if self._conversation is None:
            self._conversation = self._in_view_order(self.resumed, self.entries)
        return self._conversation

    def _in_view_order(
        self, before: Sequence[TapeEntry], entries: Sequence[TapeEntry]
    ) -> list[TapeEntry]:
        found, aside = list(before), list[TapeEntry]()
        for entry in entries:
            if MEANWHILE in entry.meta:
                aside.append(entry)
                continue
            if aside and starts_turn(entry):
                found, aside = [*found, *aside], []
            if entry.kind in CONVERSATION_KINDS:
                found.append(entry)
            else:
                found += self._joined(entry)
            if aside and _role(entry) == "assistant":
                found, aside = [*found, *aside], []
        if self.edits:
            return [self.edits.get(entry.id, entry) for entry in found]
        return found

    def without_messages(self, aside: Collection[int]) -> WindowFold:
        """Return a copy without some messages, for reading only."""
        return replace(
            self,
            entries=[entry for entry in self.entries if entry.id not in aside],
            queued={one: entry for one, entry in self.queued.items() if one not in aside},
            resumed=[entry for entry in self.resumed if entry.id not in aside],
        )

    def entries_to_resume(self) -> ResumedEntries:
        """Return what would return with the active problem later: its newest whole turns."""
        spoken = self.conversation()
        first = len(spoken)
        messages = tokens = 0
        for place in range(len(spoken) - 1, -1, -1):
            messages += spoken[place].kind == "message"
            tokens += entry_tokens(spoken[place])
            if messages * _SHARE > self.max_messages or tokens * _SHARE > self.max_tokens:
                break
            if _opens(spoken, place):
                first = place
        return ResumedEntries.of_entries(spoken[first:])

    def add_resumed(self, entries: Iterable[TapeEntry]) -> None:
        """Add the entries that return with a problem, after reading them from the tape."""
        found = {entry.id: entry for entry in entries}
        known = [found[other] for other in self.resume_plan.ids if other in found]
        # An imported tape may name any entries; only those of the same problem count.
        known = [
            entry
            for entry in known
            if entry.kind in CONVERSATION_KINDS and problem_of(entry) == self.problem
        ]
        # A message edited while another problem was active appears in its new version.
        edits = {old: entry for entry in known if (old := replaced_entry_id(entry)) in found}
        placed = [entry for entry in known if replaced_entry_id(entry) not in found]
        self.resumed = [edits.get(entry.id, entry) for entry in placed]
        self._forget_order()

    def messages_by_platform_id(self, inbound: Iterable[str]) -> list[TapeEntry]:
        """Return the newest messages in view with these platform ids, and edits of them."""
        wanted = frozenset(inbound)
        if not wanted:
            return []
        if wanted not in self._by_platform_id:
            self._by_platform_id[wanted] = [
                entry
                for entry in self._in_view()[len(self.resumed) :][-_NEAR:]
                if entry.meta.get("inbound") in wanted or entry.meta.get("edits") in wanted
            ]
        return list(self._by_platform_id[wanted])

    def joined_since(self, first: int) -> list[TapeEntry]:
        """Return the queued messages that joined at or after an entry."""
        return [other for entry in self.entries_since(first) for other in self._joined(entry)]

    def entries_since(self, first: int) -> list[TapeEntry]:
        """Return the entries in view from an id on."""
        return self.entries[bisect_left(self.entries, first, key=_entry_id) :]

    def waiting_messages(self) -> list[TapeEntry]:
        """Return the queued messages that still need a turn."""
        return [entry for entry in self._not_joined() if not is_overheard(entry)]

    def overheard_messages(self) -> list[TapeEntry]:
        """Return the overheard messages that wait for the next turn."""
        return [entry for entry in self._not_joined() if is_overheard(entry)]

    def turn_starts(self) -> list[int]:
        """Return the ids at which user turns in view begin, oldest first."""
        return [entry.id for entry in self.entries if starts_turn(entry)]

    def _switch(self, boundary: TapeEntry) -> None:
        problem = switched_problem(boundary)
        if problem is not None:
            self.problem = problem
            self.resume_plan = ResumedEntries.from_json(boundary.data.get("returns"))
            self._count()

    def _add_spoken(self, entry: TapeEntry) -> None:
        cost = entry_tokens(entry)
        if problem_of(entry) != self.problem:
            # For example an edit of a message from before the switch.
            if (
                entry.kind == "message"
                and not is_queued(entry)
                and replaced_entry_id(entry) is None
            ):
                self._add_unconsolidated(entry)
            return
        if (old := replaced_entry_id(entry)) is not None:
            self.edits[old] = entry
            self._forget_order()
            return
        if is_overheard(entry):
            self.queued[entry.id] = entry
            waiting = self.overheard_messages()
            if len(waiting) > MAX_OVERHEARD:
                del self.queued[waiting[0].id]
            return
        self.messages += entry.kind == "message"
        self.tokens += cost
        self._add_unconsolidated(entry)
        if is_queued(entry):
            self.queued[entry.id] = entry
        else:
            self.entries.append(entry)
            if MEANWHILE in entry.meta or _role(entry) in ("assistant", "user"):
                self._conversation = None
            elif self._conversation is not None:
                self._conversation.append(entry)

    def _join(self, event: TapeEntry) -> None:
        """Take queued messages into view; overheard ones are counted from here on."""
        self.entries.append(event)
        self._forget_order()
        for entry in self._joined(event):
            if is_overheard(entry):
                cost = entry_tokens(entry)
                self.messages += 1
                self.tokens += cost
                if entry.id > self.consolidated_through:
                    self._add_unconsolidated(entry)

    def _leave_behind(self, entry: TapeEntry) -> None:
        """Drop waiting messages that no turn will take in: overheard ones, or a parent's."""
        dropped: list[TapeEntry] = []
        if entry.kind == "anchor" and entry.name == SESSION_FORK:
            dropped = self._not_joined()
        elif discards_overheard(entry):
            dropped = self.overheard_messages()
        for other in dropped:
            del self.queued[other.id]
            if not is_overheard(other):
                self._uncount(other)

    def _uncount(self, entry: TapeEntry) -> None:
        """Subtract a waiting message from the counts."""
        cost = entry_tokens(entry)
        self.messages -= 1
        self.tokens -= cost
        if entry.id > self.consolidated_through and not is_caused(entry):
            self.unconsolidated -= 1
            self.unconsolidated_tokens -= cost

    def _add_unconsolidated(self, entry: TapeEntry) -> None:
        """Count an entry; what no person caused never makes a consolidation due."""
        if not is_caused(entry):
            self.unconsolidated += entry.kind == "message"
            self.unconsolidated_tokens += entry_tokens(entry)

    def _not_joined(self) -> list[TapeEntry]:
        if not self.queued:
            return []
        joined = {i for entry in self.entries for i in joined_message_ids(entry)}
        return [entry for entry_id, entry in self.queued.items() if entry_id not in joined]

    def _consolidated(self, state: dict[str, Any]) -> None:
        through = state.get("through")
        if type(through) is not int or through <= self.consolidated_through:
            return
        self.consolidated_through = through
        messages, tokens = state.get("messages"), state.get("tokens")
        if type(messages) is int and type(tokens) is int:
            self.unconsolidated = max(0, self.unconsolidated - messages)
            self.unconsolidated_tokens = max(0, self.unconsolidated_tokens - tokens)
        if through >= self.first_id:
            self._drop_before(through + 1)
        if self.first_id == through + 1:
            # All that is left is in view: recount it, to correct earlier miscounts.
            left = [entry for entry in self.conversation() if entry.id > through]
            left += [entry for entry in self.waiting_messages() if entry.id > through]
            self.unconsolidated = self.unconsolidated_tokens = 0
            for entry in left:
                self._add_unconsolidated(entry)

    def _bound(self, bounds: object) -> None:
        if isinstance(bounds, list) and [type(bound) for bound in bounds] == [int, int]:
            self.max_messages, self.max_tokens = bounds
        if self.messages <= self.max_messages and self.tokens <= self.max_tokens:
            return
        # Resumed entries are the oldest, and are dropped as a whole.
        messages = self.messages - self.resume_plan.messages
        tokens = self.tokens - self.resume_plan.tokens
        place = None
        for entry in self.entries:
            if starts_turn(entry):
                place = entry.id
                if messages * 2 <= self.max_messages and tokens * 2 <= self.max_tokens:
                    break
            for other in [entry] if entry.kind in CONVERSATION_KINDS else self._joined(entry):
                messages -= other.kind == "message"
                tokens -= entry_tokens(other)
        if place is not None:
            self._drop_before(place)

    def _drop_before(self, first: int) -> None:
        self.first_id = first
        self.resume_plan, self.resumed = NO_RESUMED_ENTRIES, []
        for entry in self.entries:
            if entry.id < first:
                self._forget(entry)
        self.entries = [entry for entry in self.entries if entry.id >= first]
        self.edits = {
            old: entry for old, entry in self.edits.items() if old >= first or old in self.queued
        }
        self._forget_order()
        self._count()

    def _forget(self, event: TapeEntry) -> None:
        """Drop the queued messages that joined at an event out of view."""
        for entry_id in joined_message_ids(event):
            self.queued.pop(entry_id, None)

    def _count(self) -> None:
        in_view = [entry for entry in self.entries if entry.kind in CONVERSATION_KINDS]
        waits = {entry.id for entry in self.overheard_messages()}
        in_view += [entry for entry in self.queued.values() if entry.id not in waits]
        self.messages = sum(entry.kind == "message" for entry in in_view)
        self.tokens = sum(entry_tokens(entry) for entry in in_view)
        self.messages += self.resume_plan.messages
        self.tokens += self.resume_plan.tokens

    def _joined(self, entry: TapeEntry) -> list[TapeEntry]:
        return [self.queued[i] for i in joined_message_ids(entry) if i in self.queued]
