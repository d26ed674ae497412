"""The memory zone's snapshot, its tape entries, and its rendering for the prompt. Pure.

Rule 1: a snapshot never changes; an edit makes a new one with the next version.
Rule 2: a zone is ``memory/open``, its events, and ``memory/seal``, appended atomically; without its
    seal it does not exist.
Rule 3: the zone with the highest version is current; of equal versions, the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.records.prompt_escaping import escape_tags
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry, anchor, event

LONG_TERM_EVENT = "memory.long_term"
DAILY_EVENT = "memory.daily"
SHARED_EVENT = "memory.shared"
REFERENCE_EVENT = "memory.reference"

RECENT_DAYS = 7
MAX_LONG_TERM_BYTES = 4_000
"""Size limit in bytes of long-term memory that is saved as one text."""

MAX_NOTE_BYTES = 4_096
"""Size limit of one day's note in bytes."""

_MAX_RECENT = 8_192

_HINTS = "Facts have a number and the day since which they hold."


@dataclass(frozen=True, slots=True)
class DailyNote:
    """Notes of one day; ``date`` is ISO, in the user's time zone."""

    date: str
    content: str


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Content of the zone.

    Attributes:
        version: Grows by one with each edit; 0 if there is no zone yet.
        long_term: Long-term memory as Markdown.
        dailies: At most one note per day, oldest first.
        shared: The workspace's facts as Markdown.
        reference: Shared reference and beliefs that the session reads, one line each.
        facts: Fact number and date of validity for each line of long-term memory; empty if unknown.
        left: How many facts have no room in it.
        room: Tokens that its facts may have; 0 if unknown.
        cleared: A person cleared memory: older messages are not learned from again.
    """

    version: int = 0
    long_term: str = ""
    dailies: tuple[DailyNote, ...] = ()
    shared: str = ""
    reference: str = ""
    facts: tuple[tuple[int, str], ...] = ()
    left: int = 0
    room: int = 0
    cleared: bool = field(default=False, compare=False)

    def with_long_term(
        self,
        content: str,
        facts: tuple[tuple[int, str], ...] = (),
        *,
        left: int = 0,
        room: int = 0,
    ) -> MemorySnapshot:
        """Return the next version with this long-term memory, made from these facts."""
        return replace(
            self,
            version=self.version + 1,
            long_term=content.strip(),
            facts=facts,
            left=left,
            room=room,
            cleared=False,
        )

    def numbered_facts(self) -> str:
        """Return long-term memory for a model: each fact with its number and date."""
        lines = self.long_term.splitlines()
        if len(lines) != len(self.facts):
            return self.long_term
        told = zip(lines, self.facts, strict=True)
        return "\n".join(
            numbered_fact_line(fact, line.removeprefix("- "), day) for line, (fact, day) in told
        )

    def changes_since(
        self, before: MemorySnapshot, reported: Iterable[tuple[int, str]] = ()
    ) -> str | None:
        """Return new and removed facts since a snapshot that a model is shown, as text; empty if none.

        ``reported`` are later changes that it is shown besides. None if all has to be told: either snapshot
        has lines without fact numbers, or that is no longer.
        """
        old, new = before.numbered_facts().splitlines(), self.numbered_facts().splitlines()
        if len(old) != len(before.facts) or len(new) != len(self.facts):
            return None
        shown = {fact: line for (fact, _), line in zip(before.facts, old, strict=True)}
        for fact, text in reported:
            shown[fact] = text
            if not text:
                del shown[fact]
        plain = (line.removeprefix("- ").rstrip(".") for line in self.long_term.splitlines())
        lines = [
            line
            for (fact, _), line, text in zip(self.facts, new, plain, strict=True)
            if shown.pop(fact, None) not in (line, text)
        ]
        if shown:
            prefix = UNLISTED_PREFIX if self.left else REMOVED_PREFIX
            lines.append(prefix + ", ".join(f"[{fact}]" for fact in shown))
        changes = "\n".join(lines)
        return changes if len(changes) < len(self.numbered_facts()) or not changes else None

    def with_shared(self, content: str) -> MemorySnapshot:
        """Return the next version with these workspace facts."""
        return replace(self, version=self.version + 1, shared=content.strip(), cleared=False)

    def with_reference(self, content: str) -> MemorySnapshot:
        """Return the next version with this shared reference."""
        return replace(self, version=self.version + 1, reference=content.strip(), cleared=False)

    def with_daily(self, day: str, content: str) -> MemorySnapshot:
        """Return the next version with text appended to a day's note."""
        notes = {note.date: note.content for note in self.dailies}
        before = notes.get(day)
        notes[day] = f"{before}\n{content.strip()}" if before else content.strip()
        dailies = tuple(DailyNote(key, notes[key]) for key in sorted(notes))
        return replace(self, version=self.version + 1, dailies=dailies, cleared=False)

    def pruned(self, today: date, retention_days: int) -> MemorySnapshot:
        """Return a copy without notes older than the retention, with the same version."""
        oldest = (today - timedelta(days=retention_days)).isoformat()
        return replace(self, dailies=tuple(n for n in self.dailies if n.date >= oldest))

    def without_own_memory(self) -> MemorySnapshot:
        """Return the next version without the session's own facts and notes."""
        return replace(
            self,
            version=self.version + 1,
            long_term="",
            facts=(),
            left=0,
            dailies=(),
            cleared=True,
        )


REMOVED_PREFIX = "Not in it any more: "
UNLISTED_PREFIX = "Not in it, ended or for want of room: "
"""Begins the numbers of facts that may have ended, or have no room in memory as it is shown."""


def numbered_fact_line(fact: int, text: str, day: str) -> str:
    """Return a fact as a line for a model."""
    return f"- [{fact}] {text}" + (f" ({day})" if day else "")


def zone_entries(snapshot: MemorySnapshot, now: str) -> list[TapeEntry]:
    """Return the entries that write a zone in one append; ``now`` is ISO 8601."""
    state: dict[str, Any] = {"version": snapshot.version}
    entries = [anchor(MEMORY_OPEN, {**state, "cleared": True} if snapshot.cleared else state)]
    if snapshot.long_term:
        data: dict[str, Any] = {"content": snapshot.long_term, "updated_at": now}
        if snapshot.facts:
            data["facts"] = [list(fact) for fact in snapshot.facts]
            data |= {"left": snapshot.left, "room": snapshot.room}
        entries.append(event(LONG_TERM_EVENT, data))
    if snapshot.shared:
        entries.append(event(SHARED_EVENT, {"content": snapshot.shared, "updated_at": now}))
    if snapshot.reference:
        entries.append(event(REFERENCE_EVENT, {"content": snapshot.reference, "updated_at": now}))
    entries += [
        event(DAILY_EVENT, {"date": note.date, "content": note.content, "updated_at": now})
        for note in snapshot.dailies
    ]
    return [*entries, anchor(MEMORY_SEAL, state)]


@dataclass(slots=True)
class ZoneFold:
    """Find the current zone in a tape's entries.

    Attributes:
        snapshot: The current zone.
        span: Ids of its open and seal anchors; None if there is no zone.
        saved_at: When it was sealed, ISO 8601 in UTC.
        cleared: Id of the seal of the last cleared zone, or of a reset; 0 if there is none.
    """

    snapshot: MemorySnapshot = field(default_factory=MemorySnapshot)
    span: tuple[int, int] | None = None
    saved_at: str = ""
    cleared: int = 0
    _open: TapeEntry | None = None
    _inside: list[TapeEntry] = field(default_factory=list)

    def apply(self, entry: TapeEntry) -> bool:
        """Apply one entry; return True if it completed a new current zone."""
        if entry.is_reset:
            self._forget(entry)
        elif entry.kind == "anchor" and entry.name == MEMORY_OPEN:
            self._open, self._inside = entry, []
        elif self._open is None:
            pass
        elif entry.kind == "anchor" and entry.name == MEMORY_SEAL:
            return self._seal(entry, self._open)
        else:
            self._inside.append(entry)
        return False

    def _forget(self, reset: TapeEntry) -> None:
        """Forget the zone after a reset, but keep counting versions."""
        self._open = None
        if self.snapshot.version:
            self.cleared = reset.id
        self.snapshot, self.span = MemorySnapshot(self.snapshot.version), None

    def _seal(self, seal: TapeEntry, opened: TapeEntry) -> bool:
        self._open = None
        version = _version(seal)
        if version != _version(opened) or version < max(1, self.snapshot.version):
            return False
        if opened.data.get("cleared") is True:
            self.cleared = seal.id
        self.snapshot = _parse(self._inside, version)
        self.span = (opened.id, seal.id)
        self.saved_at = str(seal.meta.get("ts", ""))
        return True


def render_memory_block(snapshot: MemorySnapshot, today: date, *, hints: bool = True) -> str:
    """Render the ``<memory>`` block: usage hints, long-term memory, today's and recent notes.

    Without ``hints``, for models without tools, it names no tools that change memory.
    """
    parts = [_HINTS] if hints else []
    if snapshot.long_term:
        more = f"\n({snapshot.left:,} more: {'look them up' if hints else 'not shown'})"
        told = snapshot.numbered_facts() + (more if snapshot.left else "")
        parts.append(f"## Long-term Memory\n{told}")
    if snapshot.shared:
        parts.append(f"## Shared with Everyone\n{snapshot.shared}")
    if snapshot.reference:
        parts.append(f"## Reference\n{snapshot.reference}")
    day = today.isoformat()
    oldest = (today - timedelta(days=RECENT_DAYS)).isoformat()
    todays = [note for note in snapshot.dailies if note.date == day]
    recent = [note for note in snapshot.dailies if oldest <= note.date < day]
    if todays:
        parts.append(f"## Today's Notes\n{todays[0].content}")
    if recent:
        notes = "\n\n".join(f"### {note.date}\n{note.content}" for note in reversed(recent))
        cut = "\n… (older notes are left out; memory_recall finds them)"
        parts.append(f"## Recent Notes\n{notes[:_MAX_RECENT]}{cut * (len(notes) > _MAX_RECENT)}")
    body = escape_tags("\n\n".join(parts))
    return f"<memory>\n{body}\n</memory>"


def check_note_size(snapshot: MemorySnapshot, day: str) -> MemorySnapshot:
    """Return the snapshot if the day's note is within its size limit.

    Raises:
        MemoryRefused: The note is too large.
    """
    note = next((note for note in snapshot.dailies if note.date == day), None)
    if note is not None and len(note.content.encode("utf-8", "backslashreplace")) > MAX_NOTE_BYTES:
        raise MemoryRefused(
            _(
                "the notes of {day} would pass {limit} bytes: keep them short",
                day=day,
                limit=MAX_NOTE_BYTES,
            )
        )
    return snapshot


def _version(entry: TapeEntry) -> int:
    version = entry.data.get("version")
    return version if type(version) is int else 0


def _parse(entries: list[TapeEntry], version: int) -> MemorySnapshot:
    long_term = shared = reference = ""
    facts: tuple[tuple[int, str], ...] = ()
    left = room = 0
    notes: dict[str, str] = {}
    for entry in entries:
        content: Any = entry.data.get("content")
        if not isinstance(content, str):
            continue
        if entry.name == LONG_TERM_EVENT:
            long_term, facts = content, _facts(entry.data.get("facts"))
            left, room = _count(entry.data.get("left")), _count(entry.data.get("room"))
        elif entry.name == SHARED_EVENT:
            shared = content
        elif entry.name == REFERENCE_EVENT:
            reference = content
        elif entry.name == DAILY_EVENT and isinstance(day := entry.data.get("date"), str):
            notes[day] = content
    dailies = tuple(DailyNote(day, notes[day]) for day in sorted(notes))
    return MemorySnapshot(version, long_term, dailies, shared, reference, facts, left, room)


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _facts(value: Any) -> tuple[tuple[int, str], ...]:
    found = value if isinstance(value, list) else []
    return tuple(
        (one[0], one[1])
        for one in found
        if isinstance(one, list)
        and len(one) == 2
        and type(one[0]) is int
        and isinstance(one[1], str)
    )
