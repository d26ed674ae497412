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
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
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
from bot.memory.session.state import zone_snapshot as zones
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
from bot.transfer.imported import (
    CONSOLE_SESSION,
    ImportedMemory,
    ImportedSession,
    Reading,
    is_private,
)
from bot.transfer.readers import READERS

_HEAD = 64  # entries; an untouched tape has fewer, and an import stands within them
_BOOKKEEPING = frozenset(
    {
        HEADER_EVENT,
        SESSION_START,
        MEMORY_OPEN,
        MEMORY_SEAL,
        zones.SHARED_EVENT,
        zones.REFERENCE_EVENT,
    }
)
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
    """The outcome for one session, with an explanation to display.

    ``known``: it was imported before or is empty; ``changed``: a person's conversation has grown
    since; ``refused``: its tape is in use.
    """

    session: str
    status: ImportStatus
    text: str


@dataclass(frozen=True, slots=True)
class ImportWriter:
    """Writes what a reader yields, and counts it in the reading; nothing is written in a dry run."""

    store: TapeStore
    clock: Clock
    reading: Reading
    retention_days: int
    dry_run: bool = False

    async def run(self, path: Path) -> AsyncGenerator[ImportResult, None]:
        """Import one conversation after the other, then the memory; yield each outcome when it is done."""
        sessions = READERS[self.reading.bot](path, self.reading)
        if not self.reading.person:
            # Which of them gets the memory is known once all are read.
            found = await anyio.to_thread.run_sync(list, sessions)
            sessions = iter(await self._with_memory(found))
        while (session := await anyio.to_thread.run_sync(next, sessions, None)) is not None:
            result = await self._write(session)
            self.reading.count(session, result.status)
            yield result
        if (memory := self.reading.memory_session()) is not None:
            result = await self._write(memory)
            if result.status == "refused":
                yield result

    async def _with_memory(self, sessions: list[ImportedSession]) -> list[ImportedSession]:
        """Add the shared memory to one of the sessions: the one that has it already, if any."""
        keys, target = {one.session: one for one in sessions}, self.reading.memory_to
        if not self.reading.shared:
            return sessions
        for key in (CONSOLE_SESSION, *keys) if target is None else ():
            entry = await self._import_on(key)
            if target is None and entry is not None and entry.data.get("memory") is True:
                target = key
        target = target or (next(iter(keys)) if len(keys) == 1 else CONSOLE_SESSION)
        keys.setdefault(target, ImportedSession("", target, "memory")).memory = self.reading.shared
        return list(keys.values())

    async def _write(self, session: ImportedSession) -> ImportResult:
        """Import one session, and make facts or proposals of its memory."""
        name, digest = session.session, _digest(session)
        if not (session.entries or session.history or session.memory):
            return ImportResult(name, "known", _("it is empty; nothing to do"))
        if (known := await self._import_on(name)) is not None:
            if known.data.get("digest") != digest:
                return self._differs(session, known)
            await self._learn(session, known)
            return ImportResult(name, "known", _("already imported; nothing to do"))
        if (there := await self._untouched(name)) is None:
            return ImportResult(name, "refused", _("already has a conversation; left unchanged"))
        if not self.dry_run:
            await self.store.create_tape(name)
            version = await self.store.version(name)
            batch = self._batch(session, digest, version, there)
            written = await self.store.append_many(name, batch, expect=version)
            await self._learn(session, next(e for e in written if e.name == IMPORTED_EVENT))
        return ImportResult(name, "imported", _told(session))

    async def _import_on(self, session: str) -> TapeEntry | None:
        """Return the event of an earlier import to a tape, or None."""
        try:
            head = await self.store.read(session, 1, _HEAD)
        except TapeNotFound:
            return None
        return next((entry for entry in head if entry.name == IMPORTED_EVENT), None)

    async def _untouched(self, session: str) -> list[TapeEntry] | None:
        """Return the entries of a tape on which nothing has happened; None if something has."""
        held: list[TapeEntry] = []
        try:
            async with aclosing(self.store.read_back(session)) as entries:
                async for entry in entries:
                    if entry.name not in _BOOKKEEPING or len(held) > _HEAD:
                        return None
                    held.insert(0, entry)
        except TapeNotFound:
            pass
        return held

    def _batch(
        self, session: ImportedSession, digest: str, version: int, there: list[TapeEntry]
    ) -> list[TapeEntry]:
        """Return all entries to append to a tape of this version."""
        reading, now, zone = self.reading, self.clock.now(), zones.ZoneFold()
        for entry in there:
            zone.apply(entry)
        snapshot, rest = _fit(session.memory, zone.snapshot, now, self.retention_days)
        history = [*rest, *session.memory.history, *session.history]
        times = [str(entry.meta["ts"]) for entry in (*history, *session.entries)]
        begin = anchor(SESSION_START, {"owner": "human"}, ts=min(times, default=format_time(now)))
        started = any(entry.name == SESSION_START for entry in there)
        data: dict[str, Any] = {"from": reading.bot, "key": session.key, "source": session.source}
        data |= {"digest": digest, "messages": session.messages, "memory": bool(session.memory)}
        data |= {"for": reading.person} if reading.person else {}
        entries = [*([] if started else [begin]), event(IMPORTED_EVENT, data), *history]
        first = version + 1 + len(entries)
        entries += session.entries
        home = self._home(session.session)
        if home != session.session and (reading.person or session.memory):
            entries.append(scope_entry(home))
        entries += zones.zone_entries(snapshot, format_time(now)) if session.memory else []
        if session.consolidated_count:
            settled = session.entries[: session.consolidated_count]
            state = {"through": first + len(settled) - 1}
            state["version"] = (snapshot if session.memory else zone.snapshot).version
            state["messages"] = sum(entry.kind == "message" for entry in settled)
            state["tokens"] = sum(map(entry_tokens, settled))
            entries.append(anchor(MEMORY_CONSOLIDATED, state))
        source = [version + 1, version + len(entries)]
        entries.append(_boundary(session, reading, source, first + len(session.entries) - 1))
        return [entry.with_meta(origin=reading.origin) for entry in entries]

    async def _learn(self, session: ImportedSession, imported: TapeEntry) -> None:
        """Make facts of long-term memory, or proposals for a person, once."""
        name, proposals = session.session, list[Proposal]()
        if session.is_memory and not self.dry_run:
            who = f"{assistant_of(name)}'s memory"
            reason = Reason("imported_line", who=who)
            for entry in await self.store.read(name):
                if entry.kind == "message" and not is_erased(entry):
                    cited = replace(cite(name, entry), origin="import", who=who)
                    told = Proposal("add", str(entry.payload["content"]), evidence=(cited,))
                    subject = str(entry.meta.get("subject") or "")
                    proposals.append(replace(told, subject=subject, review_reason=reason))
        cited = replace(cite(name, imported, ""), origin="import", who="memory")
        for heading, line in lines_with_headings(session.memory.text):
            if len(line) <= MAX_FACT_TEXT and not is_placeholder(line):
                proposals.append(Proposal("add", line, subject=heading, evidence=(cited,)))
        if self.dry_run or not proposals:
            return
        home = self._home(name)
        kind: ScopeKind = "session" if home == name else "person"
        scope = ScopeMemory(TapeService(self.store, home), kind, self.clock)
        key = f"import:{name}:{imported.data['digest']}"
        outcome = await scope.apply(ProposalBatch(key, "import", tuple(proposals)))
        self.reading.proposed = 0 if outcome.repeated else len(outcome.with_verdict("pending"))

    def _home(self, session: str) -> str:
        """Return the tape of a session's facts, judging by the session's key."""
        if not self.reading.person and is_private(session) is not True:
            return session
        address = Address.parse(self.reading.person or session)
        return person_scope(address.channel, address.chat_id)

    def _differs(self, session: ImportedSession, known: TapeEntry) -> ImportResult:
        """Return the outcome for a session that was imported in another form before."""
        before, person = known.data, self.reading.person
        if person and before.get("for") == person:
            text = _(
                "had {before} messages when it was imported and has {messages} now; left unchanged",
                before=before.get("messages"),
                messages=session.messages,
            )
            return ImportResult(session.session, "changed", text)
        text = _(
            "already has a different or shorter import from {bot} for {person}; left unchanged",
            bot=before.get("from"),
            person=before.get("for") or session.session,
        )
        return ImportResult(session.session, "refused", text)


def _digest(session: ImportedSession) -> str:
    """Return a digest that is equal for equal imports."""
    memory = session.memory
    entries = (*session.history, *session.entries, *memory.history)
    parts = [[entry.kind, entry.payload, entry.meta] for entry in entries]
    text = json.dumps([session.key, parts, memory.text, memory.notes], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _fit(
    memory: ImportedMemory, current: zones.MemorySnapshot, now: datetime, days: int
) -> tuple[zones.MemorySnapshot, list[TapeEntry]]:
    """Return the zone with what it has room for, and what is too old or too long as history."""
    notes, lines = [], memory.text.split("\n")
    long = [line for line in lines if len(line) > MAX_FACT_TEXT]
    rest = _pieces("From MEMORY.md", "\n".join(long), format_time(now))  # for the tape
    # All lines become facts; these are in the first prompt.
    shown = "\n".join(line for line in lines if len(line) <= MAX_FACT_TEXT)
    data = shown.encode("utf-8", "backslashreplace")
    if len(data) > zones.MAX_LONG_TERM_BYTES:
        shown = data[: zones.MAX_LONG_TERM_BYTES].decode("utf-8", "ignore").rpartition("\n")[0]
    oldest = (now - timedelta(days=days)).date().isoformat()
    for day, note in sorted(memory.notes.items()):
        if day >= oldest and len(note.encode("utf-8", "backslashreplace")) <= zones.MAX_NOTE_BYTES:
            notes.append(zones.DailyNote(day, note))
        else:
            noon = min(f"{day}T12:00:00.000+00:00", format_time(now))
            rest += _pieces(f"Notes of {day}", note, noon)  # for the tape
    return replace(current.with_long_term(shown), dailies=tuple(notes)), rest


def _pieces(head: str, text: str, moment: str) -> list[TapeEntry]:
    """Return a text as history events that recall shows whole, cut at its lines where they allow it."""
    parts = [""]
    for line in text.split("\n"):
        for at in range(0, len(line), _PIECE):
            part = line[at : at + _PIECE]
            if len(parts[-1]) + len(part) < _PIECE:
                parts[-1] += f"\n{part}"
            else:
                parts.append(part)
    span = {"from": moment, "to": moment}
    told = [f"{head}: {part.strip()}" for part in parts if part.strip()]
    return [event(HISTORY_EVENT, {"entry": one, **span}, ts=moment) for one in told]


def _boundary(
    session: ImportedSession, reading: Reading, source: list[int], last: int
) -> TapeEntry:
    """Return the anchor after the imported entries, of which the last one's id is given."""
    messages, entries, kept = session.messages, session.entries, session.memory.text
    heading = Reason("brought_over_memory" if kept else "brought_over", bot=reading.bot)
    state: dict[str, Any] = {}
    if times := [str(entry.meta["ts"]) for entry in entries]:
        code = "brought_over_all" if kept else "brought_over_talk"
        code += "" if reading.person else "_recalled"
        span = {"since": times[0][:10], "until": times[-1][:10]}
        heading = Reason(code, bot=reading.bot, messages=messages, **span)
    # What is memory or a note is not read for facts.
    if reading.person and session.consolidated_count < len(entries):
        span = {"for": reading.person, "since": min(times), "until": max(times)}
        state["conversation"] = {**span, "messages": messages, "last": last}
    reason = Reason("imported_from", bot=reading.bot).as_json()
    state |= {"next_steps": [], "source": source, "owner": "human", "reason": reason}
    return anchor(SESSION_IMPORTED, {**summary_state("", heading), **state})


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
