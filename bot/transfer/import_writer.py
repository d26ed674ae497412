"""Write imported conversations and memory to tapes, once per session.

Rule 1: a session is written in one append to a tape on which nothing has happened. After a crash it
    is there completely or not at all, and importing again completes the rest.
Rule 2: an ``imported`` event at the start of the append identifies the import: a second import adds
    nothing.
Rule 3: a boundary follows it: the bot starts afresh, with the memory but without the messages.
Rule 4: what the other bot had consolidated counts as consolidated; the rest is consolidated here.
Rule 5: nothing is lost for its length: what does not fit into memory becomes history, in pieces.
Rule 6: each line of long-term memory becomes a fact in the scope that the session belongs to; if a
    crash prevents that, importing again does it.
Rule 7: nothing is learned from the sessions that are imported for a person: lines of memory are
    proposals, which wait until the person accepts them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from bot.bus import Address
from bot.core.clock import Clock, format_time
from bot.core.errors import TapeNotFound
from bot.core.i18n import N_, _, ngettext
from bot.core.reasons import Reason
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.records.boundaries import summary_state
from bot.memory.records.conversation_entries import entry_tokens
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import cite
from bot.memory.records.fact import MAX_FACT_TEXT
from bot.memory.records.imports import IMPORTED_EVENT, SESSION_IMPORTED, assistant_of
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.tombstones import is_erased
from bot.memory.session.linking.scope_registry import person_scope, scope_entry
from bot.memory.session.long_term_memory import lines_with_headings
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    MAX_LONG_TERM_BYTES,
    MAX_NOTE_BYTES,
    REFERENCE_EVENT,
    SHARED_EVENT,
    DailyNote,
    MemorySnapshot,
    ZoneFold,
    zone_entries,
)
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
)
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT, TapeStore
from bot.transfer.conversion import is_private
from bot.transfer.imported import CONSOLE_SESSION, ImportedSession, Reading
from bot.transfer.readers import READERS

_HEAD = 64  # entries; an untouched tape has fewer, and an import stands within them
_ZONE = (LONG_TERM_EVENT, SHARED_EVENT, REFERENCE_EVENT, DAILY_EVENT)
_BOOKKEEPING = frozenset({HEADER_EVENT, SESSION_START, MEMORY_OPEN, MEMORY_SEAL, *_ZONE})
_PIECE = 350  # characters; a passage is recalled up to 400

ImportStatus = Literal["imported", "known", "changed", "refused"]

STATUS_WORDS: dict[ImportStatus, str] = {
    "imported": N_("imported"),
    "known": N_("known"),
    "changed": N_("changed"),
    "refused": N_("refused"),
}
"""Each status as a person reads it."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome for one session.

    Attributes:
        session: The session's key.
        status: ``imported``; ``known`` if it was imported before or is empty; ``changed`` if a
            person's conversation has grown since; ``refused`` if its tape is in use.
        text: Explanation to display.
    """

    session: str
    status: ImportStatus
    text: str


@dataclass(slots=True)
class AssistantImport:
    """One import of an assistant's data.

    Attributes:
        path: Where the data is.
        reading: What was found besides the conversations.
        memory_to: The session that gets a memory for all; None for the only session, or else the
            console's.
        statuses: Number of conversations by outcome.
        messages: Number of messages by role.
        since: Time of the oldest message; empty if there is none.
        until: Time of the newest one.
        proposed: Number of lines of memory that wait for the person now.
    """

    path: Path
    reading: Reading
    memory_to: str | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    since: str = ""
    until: str = ""
    proposed: int = 0

    @property
    def conversations(self) -> int:
        """Number of conversations with messages."""
        return self.statuses.total()

    async def run(self, writer: ImportWriter) -> AsyncGenerator[ImportResult, None]:
        """Import one conversation after the other, then the memory; yield each outcome.

        Raises:
            TapeWriteError: The storage failed; what was yielded before is done.
        """
        reading = self.reading
        sessions = READERS[reading.bot](self.path, reading)
        if not reading.person:
            # Which of them gets the memory is known once all are read.
            found = await anyio.to_thread.run_sync(list, sessions)
            sessions = iter(await self._with_memory(found, writer))
        while (session := await anyio.to_thread.run_sync(next, sessions, None)) is not None:
            result = await writer.write(session)
            self._count(session, result)
            yield result
        if (memory := reading.memory_session()) is not None:
            result = await writer.write(memory)
            self.proposed = writer.proposed
            if result.status == "refused":
                yield result

    async def _with_memory(
        self, sessions: list[ImportedSession], writer: ImportWriter
    ) -> list[ImportedSession]:
        """Add the memory to one of the sessions: the one that has it already, if any."""
        if not self.reading.shared:
            return sessions
        keys = {session.session: session for session in sessions}
        target = self.memory_to
        for key in (CONSOLE_SESSION, *keys) if target is None else ():
            entry = await writer.import_on(key)
            if target is None and entry is not None and entry.data.get("memory") is True:
                target = key
        target = target or (next(iter(keys)) if len(keys) == 1 else CONSOLE_SESSION)
        session = keys.setdefault(target, ImportedSession("", target, "memory"))
        session.memory = self.reading.shared
        return list(keys.values())

    def _count(self, session: ImportedSession, result: ImportResult) -> None:
        self.statuses[result.status] += 1
        for entry in session.entries:
            self.messages[str(entry.payload.get("role"))] += entry.kind == "message"
        times = [str(entry.meta["ts"]) for entry in session.entries]
        self.since = min(filter(None, [self.since, *times]), default="")
        self.until = max([self.until, *times])


@dataclass(slots=True)
class ImportWriter:
    """Write imported sessions to tapes.

    Attributes:
        store: The tape store; may be read-only for a dry run.
        clock: Source of the current time.
        bot: The other assistant's name.
        person: The identity that the sessions are imported for; empty if they keep their chats.
        retention_days: Days for which daily notes stay in memory; older ones become history.
        dry_run: Write nothing.
        proposed: Number of facts that wait for the person since the import.
    """

    store: TapeStore
    clock: Clock
    bot: str
    person: str
    retention_days: int
    dry_run: bool = False
    proposed: int = 0

    async def write(self, session: ImportedSession) -> ImportResult:
        """Import one session, and make facts or proposals of its memory.

        Raises:
            TapeWriteError: The storage failed; there is all of the session's tape or nothing.
        """
        name, digest = session.session, _digest(session)
        if not (session.entries or session.history or session.memory):
            return ImportResult(name, "known", _("it is empty; nothing to do"))
        if (known := await self.import_on(name)) is not None:
            if known.data.get("digest") != digest:
                return self._differs(session, known)
            await self._learn(session, known)
            return ImportResult(name, "known", _("already imported; nothing to do"))
        entries = await self._newest(name)
        zone = ZoneFold()
        for entry in entries:
            zone.apply(entry)
        empty = not zone.snapshot.long_term and not zone.snapshot.dailies
        if not empty or any(entry.name not in _BOOKKEEPING for entry in entries):
            return ImportResult(name, "refused", _("already has a conversation; left unchanged"))
        if not self.dry_run:
            await self.store.create_tape(name)
            version = await self.store.version(name)
            batch = self._batch(session, digest, version, zone, entries)
            written = await self.store.append_many(name, batch, expect=version)
            await self._learn(session, next(e for e in written if e.name == IMPORTED_EVENT))
        return ImportResult(name, "imported", _told(session))

    async def import_on(self, session: str) -> TapeEntry | None:
        """Return the event of an earlier import to a tape, or None."""
        try:
            head = await self.store.read(session, 1, _HEAD)
        except TapeNotFound:
            return None
        found = (entry for entry in head if entry.kind == "event" and entry.name == IMPORTED_EVENT)
        return next(found, None)

    async def _newest(self, session: str) -> list[TapeEntry]:
        """Return a tape's newest entries, back to the last one that is not bookkeeping."""
        held: list[TapeEntry] = []
        try:
            entries = self.store.read_back(session)
            async with aclosing(entries):
                async for entry in entries:
                    held.insert(0, entry)
                    if entry.name not in _BOOKKEEPING or len(held) > _HEAD:
                        break
        except TapeNotFound:
            return []
        return held

    def _batch(
        self,
        session: ImportedSession,
        digest: str,
        version: int,
        zone: ZoneFold,
        there: Sequence[TapeEntry],
    ) -> list[TapeEntry]:
        """Return all entries to append to a tape of this version."""
        now, current = self.clock.now(), zone.snapshot
        snapshot, rest = _fit(session, current, now, self.retention_days)
        history = [*rest, *session.memory.history, *session.history]
        times = [str(entry.meta["ts"]) for entry in (*history, *session.entries)]
        begin = anchor(SESSION_START, {"owner": "human"}, ts=min(times, default=format_time(now)))
        started = any(entry.name == SESSION_START for entry in there)
        data: dict[str, Any] = {"from": self.bot, "key": session.key, "source": session.source}
        data |= {"digest": digest, "messages": session.messages, "memory": bool(session.memory)}
        data |= {"for": self.person} if self.person else {}
        entries = [*([] if started else [begin]), event(IMPORTED_EVENT, data), *history]
        first = version + 1 + len(entries)
        entries += session.entries
        if self.person:
            entries.append(scope_entry(_home(self.person)))
        elif session.memory and (home := self._scope(session.session)) != session.session:
            entries.append(scope_entry(home))
        if session.memory:
            entries += zone_entries(snapshot, format_time(now))
            current = snapshot
        if session.consolidated_count:
            settled = session.entries[: session.consolidated_count]
            state = {"through": first + len(settled) - 1, "version": current.version}
            state["messages"] = sum(entry.kind == "message" for entry in settled)
            state["tokens"] = sum(map(entry_tokens, settled))
            entries.append(anchor(MEMORY_CONSOLIDATED, state))
        entries.append(self._boundary(session, [version + 1, version + len(entries)], first))
        return [entry.with_meta(origin=f"import:{self.bot}") for entry in entries]

    async def _learn(self, session: ImportedSession, imported: TapeEntry) -> None:
        """Make facts of long-term memory, or proposals for a person, once."""
        name, proposals = session.session, []
        if session.is_memory:
            who = f"{assistant_of(name)}'s memory"
            for entry in () if self.dry_run else await self.store.read(name):
                if entry.kind == "message" and not is_erased(entry):
                    cited = replace(cite(name, entry), origin="import", who=who)
                    text, subject = str(entry.payload["content"]), entry.meta.get("subject")
                    reason = Reason("imported_line", who=who)
                    proposals.append(
                        Proposal(
                            "add",
                            text,
                            subject=str(subject or ""),
                            evidence=(cited,),
                            review_reason=reason,
                        )
                    )
        else:
            cited = replace(cite(name, imported, ""), origin="import", who="memory")
            for heading, line in lines_with_headings(session.memory.text):
                if len(line) <= MAX_FACT_TEXT and not is_placeholder(line):
                    proposals.append(Proposal("add", line, subject=heading, evidence=(cited,)))
        if self.dry_run or not proposals:
            return
        home = self._scope(name)
        kind: ScopeKind = "session" if home == name else "person"
        scope = ScopeMemory(TapeService(self.store, home), kind, self.clock)
        key = f"import:{name}:{imported.data['digest']}"
        outcome = await scope.apply(ProposalBatch(key, "import", tuple(proposals)))
        self.proposed = 0 if outcome.repeated else len(outcome.with_verdict("pending"))

    def _scope(self, session: str) -> str:
        """Return the tape of a session's facts, judging by the session's key."""
        if self.person:
            return _home(self.person)
        return _home(session) if is_private(session) is True else session

    def _differs(self, session: ImportedSession, known: TapeEntry) -> ImportResult:
        """Return the outcome for a session that was imported in another form before."""
        before = known.data
        if self.person and before.get("for") == self.person:
            text = _(
                "had {before} messages when it was imported and has {messages} now",
                before=before.get("messages"),
                messages=session.messages,
            )
            return ImportResult(session.session, "changed", _("{text}; left unchanged", text=text))
        bot, person = before.get("from"), before.get("for")
        text = _("already has a different or shorter import from {bot}", bot=bot)
        if person:
            text = _(
                "already has a different or shorter import from {bot} for {person}",
                bot=bot,
                person=person,
            )
        return ImportResult(session.session, "refused", _("{text}; left unchanged", text=text))

    def _boundary(self, session: ImportedSession, source: list[int], first: int) -> TapeEntry:
        """Return the anchor after the imported entries; ``first`` is the first one's id."""
        state: dict[str, Any] = {
            **summary_state("", self._heading(session)),
            "next_steps": [],
            "source": source,
            "owner": "human",
            "reason": Reason("imported_from", bot=self.bot).as_json(),
        }
        # What is memory or a note is not read for facts.
        if self.person and session.consolidated_count < len(session.entries):
            times = [str(entry.meta["ts"]) for entry in session.entries]
            state["conversation"] = {
                "for": self.person,
                "since": min(times),
                "until": max(times),
                "messages": session.messages,
                "last": first + len(session.entries) - 1,
            }
        return anchor(SESSION_IMPORTED, state)

    def _heading(self, session: ImportedSession) -> Reason:
        """Return what the boundary says of the imported conversation."""
        entries, kept = session.entries, session.memory.text
        if not entries:
            return Reason("brought_over_memory" if kept else "brought_over", bot=self.bot)
        code = "brought_over_all" if kept else "brought_over_talk"
        code += "" if self.person else "_recalled"
        since, until = (str(entry.meta.get("ts"))[:10] for entry in (entries[0], entries[-1]))
        counted = {"messages": session.messages, "since": since, "until": until}
        return Reason(code, bot=self.bot, **counted)


def _home(person: str) -> str:
    """Return the tape of a person's facts, given an identity or a private chat of theirs."""
    address = Address.parse(person)
    return person_scope(address.channel, address.chat_id)


def _digest(session: ImportedSession) -> str:
    """Return a digest that is equal for equal imports."""
    memory = session.memory
    entries = (*session.history, *session.entries, *memory.history)
    parts = [[entry.kind, entry.payload, entry.meta] for entry in entries]
    text = json.dumps([session.key, parts, memory.text, memory.notes], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _fit(
    session: ImportedSession, current: MemorySnapshot, now: datetime, days: int
) -> tuple[MemorySnapshot, list[TapeEntry]]:
    """Return the zone with what it has room for, and what is too old or too long as history."""
    notes: list[DailyNote] = []
    lines = session.memory.text.split("\n")
    long = [line for line in lines if len(line) > MAX_FACT_TEXT]
    rest = list(_pieces("From MEMORY.md", "\n".join(long), format_time(now)))  # for the tape
    # All lines become facts; these are in the first prompt.
    shown = "\n".join(line for line in lines if len(line) <= MAX_FACT_TEXT)
    data = shown.encode("utf-8", "backslashreplace")
    if len(data) > MAX_LONG_TERM_BYTES:
        shown = data[:MAX_LONG_TERM_BYTES].decode("utf-8", "ignore").rpartition("\n")[0]
    oldest = (now - timedelta(days=days)).date().isoformat()
    for day, note in sorted(session.memory.notes.items()):
        if day >= oldest and len(note.encode("utf-8", "backslashreplace")) <= MAX_NOTE_BYTES:
            notes.append(DailyNote(day, note))
        else:
            noon = min(f"{day}T12:00:00.000+00:00", format_time(now))
            rest += _pieces(f"Notes of {day}", note, noon)  # for the tape
    version = current.version + 1
    snapshot = MemorySnapshot(version, shown.strip(), tuple(notes), current.shared)
    return replace(snapshot, reference=current.reference), rest


def _pieces(head: str, text: str, moment: str) -> Iterable[TapeEntry]:
    parts: list[str] = []
    for line in text.split("\n"):
        for at in range(0, len(line), _PIECE):
            part = line[at : at + _PIECE]
            if parts and len(parts[-1]) + len(part) < _PIECE:
                parts[-1] += f"\n{part}"
            else:
                parts.append(part)
    for part in filter(str.strip, parts):
        data = {"entry": f"{head}: {part.strip()}", "from": moment, "to": moment}
        yield event(HISTORY_EVENT, data, ts=moment)


def _told(session: ImportedSession) -> str:
    memory, said = session.memory, []
    if session.entries:
        said.append(ngettext("{n} message", "{n} messages", session.messages))
    if memory.text:
        said.append(_("memory"))
    if history := len(memory.history) + len(session.history):
        said.append(ngettext("{n} history event", "{n} history events", history))
    if memory.notes:
        said.append(ngettext("{n} daily note", "{n} daily notes", len(memory.notes)))
    text = ", ".join(said)
    if session.key in ("", session.session):
        return text
    return _("{text} (was {key})", text=text, key=session.key)
