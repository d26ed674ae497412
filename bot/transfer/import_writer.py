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
from hashlib import sha256
from typing import Any, Literal

from bot.bus import Address
from bot.core.clock import Clock, format_time
from bot.core.errors import TapeNotFound
from bot.core.i18n import N_, _, ngettext
from bot.core.reasons import Reason
from bot.memory.records.boundaries import summary_state
from bot.memory.records.conversation_entries import entry_tokens
from bot.memory.records.evidence import cite
from bot.memory.records.fact import MAX_FACT_TEXT
from bot.memory.records.imports import IMPORTED_EVENT, SESSION_IMPORTED
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import person_scope, scope_entry
from bot.memory.session.long_term_memory import lines_with_headings
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
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
from bot.transfer.imported import (
    CONSOLE_SESSION,
    ImportedData,
    ImportedMemory,
    ImportedSession,
)
from bot.transfer.memory_budget import fit_memory
from bot.transfer.memory_proposals import person_scope_of

_HEAD = 64  # entries; an untouched tape has fewer, and an import stands within them
_BOOKKEEPING = frozenset(
    {
        HEADER_EVENT,
        SESSION_START,
        MEMORY_OPEN,
        MEMORY_SEAL,
        LONG_TERM_EVENT,
        SHARED_EVENT,
        REFERENCE_EVENT,
        DAILY_EVENT,
    }
)

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


@dataclass(frozen=True, slots=True)
class _SessionImport:
    """The data for one tape; ``person`` is the identity that it is imported for, if it names one."""

    one: ImportedSession
    memory: ImportedMemory
    bot: str
    person: str = ""

    @property
    def messages(self) -> int:
        return sum(entry.kind == "message" for entry in self.one.entries)

    @property
    def is_read(self) -> bool:
        """Whether a person's session is memory or a note, with nothing in it to consolidate."""
        return bool(self.person) and self.one.consolidated_count == len(self.one.entries)

    def digest(self) -> str:
        """Return a digest that is equal for equal imports."""
        imported_session, memory = self.one, self.memory
        parts = [
            [entry.kind, entry.payload, entry.meta]
            for entry in (*imported_session.history, *imported_session.entries, *memory.history)
        ]
        text = json.dumps(
            [imported_session.key, parts, memory.long_term, memory.notes], sort_keys=True
        )
        return sha256(text.encode()).hexdigest()

    def event(self, digest: str) -> TapeEntry:
        """Return the event that identifies the import."""
        data: dict[str, Any] = {
            "from": self.bot,
            "key": self.one.key,
            "source": self.one.source,
            "digest": digest,
            "messages": self.messages,
            "memory": bool(self.memory),
            **({"for": self.person} if self.person else {}),
        }
        return event(IMPORTED_EVENT, data)


@dataclass(frozen=True, slots=True)
class ImportWriter:
    """Write imported data to tapes.

    Attributes:
        store: The tape store; may be read-only for a dry run.
        clock: Source of the current time.
        retention_days: Days for which daily notes stay in memory; older ones become history.
        memory_to: The session that gets the memory; None for the only session, or else the
            console's.
        dry_run: Write nothing.
    """

    store: TapeStore
    clock: Clock
    retention_days: int
    memory_to: str | None = None
    dry_run: bool = False

    async def write(self, imported_data: ImportedData) -> AsyncGenerator[ImportResult, None]:
        """Import one session after the other; yield the outcome of each.

        Raises:
            TapeWriteError: The storage failed; sessions already yielded are done.
        """
        target = await self._target(imported_data) if imported_data.memory else None
        conversations = list(imported_data.conversations)
        if target is not None and all(
            imported_session.session != target for imported_session in conversations
        ):
            conversations.append(ImportedSession("", target, "memory"))
        for imported_session in conversations:
            memory = (
                imported_data.memory if imported_session.session == target else ImportedMemory()
            )
            yield await self._land(_SessionImport(imported_session, memory, imported_data.bot))

    async def write_for(self, person: str, bot: str, session: ImportedSession) -> ImportResult:
        """Import one session for a person; nothing is learned from it by itself.

        Raises:
            TapeWriteError: The storage failed; nothing was written.
        """
        return await self._land(_SessionImport(session, ImportedMemory(), bot, person))

    async def _target(self, imported_data: ImportedData) -> str:
        """Return the session that gets the memory; one that has it already comes first."""
        if self.memory_to is not None:
            return self.memory_to
        sessions = [imported_session.session for imported_session in imported_data.conversations]
        for session in (CONSOLE_SESSION, *sessions):
            entry = await self._import_on(session)
            if entry is not None and entry.data.get("memory") is True:
                return session
        return sessions[0] if len(sessions) == 1 else CONSOLE_SESSION

    async def _land(self, parcel: _SessionImport) -> ImportResult:
        imported_session, digest = parcel.one, parcel.digest()
        if not (imported_session.entries or imported_session.history or parcel.memory):
            return ImportResult(imported_session.session, "known", _("it is empty; nothing to do"))
        if (known := await self._import_on(imported_session.session)) is not None:
            if known.data.get("digest") == digest:
                await self._learn(parcel, known)
                return ImportResult(
                    imported_session.session, "known", _("already imported; nothing to do")
                )
            return _differs(parcel, known)
        entries = await self._newest(imported_session.session)
        zone = ZoneFold()
        for entry in entries:
            zone.apply(entry)
        empty = not zone.snapshot.long_term and not zone.snapshot.dailies
        if not empty or any(entry.name not in _BOOKKEEPING for entry in entries):
            text = _("already has a conversation; left unchanged")
            return ImportResult(imported_session.session, "refused", text)
        if not self.dry_run:
            await self.store.create_tape(imported_session.session)
            version = await self.store.version(imported_session.session)
            started = any(entry.name == SESSION_START for entry in entries)
            batch = self._batch(parcel, digest, version, zone.snapshot, started=started)
            written = await self.store.append_many(imported_session.session, batch, expect=version)
            await self._learn(parcel, next(e for e in written if e.name == IMPORTED_EVENT))
        return ImportResult(imported_session.session, "imported", _told(parcel))

    async def _learn(self, parcel: _SessionImport, imported: TapeEntry) -> None:
        """Turn each line of long-term memory into a fact, once, even if memory has no room."""
        session = parcel.one.session
        if self.dry_run or not parcel.memory.long_term:
            return
        cited = cite(session, imported, "")
        evidence = (replace(cited, origin="import", who="memory"),)
        proposals = tuple(
            Proposal("add", line, subject=heading, evidence=evidence)
            for heading, line in lines_with_headings(parcel.memory.long_term)
            if len(line) <= MAX_FACT_TEXT
        )
        home = _home(session)
        kind: ScopeKind = "session" if home == session else "person"
        scope = ScopeMemory(TapeService(self.store, home), kind, self.clock)
        await scope.apply(
            ProposalBatch(f"import:{session}:{imported.data['digest']}", "import", proposals)
        )

    async def _import_on(self, session: str) -> TapeEntry | None:
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
        parcel: _SessionImport,
        digest: str,
        version: int,
        current: MemorySnapshot,
        *,
        started: bool,
    ) -> list[TapeEntry]:
        """Return all entries to append to a tape of this version for a session."""
        imported_session, memory = parcel.one, parcel.memory
        now = self.clock.now()
        snapshot, rest = fit_memory(memory, current, now, self.retention_days)
        history = [*rest, *memory.history, *imported_session.history]
        since = min(
            (str(e.meta["ts"]) for e in (*history, *imported_session.entries)),
            default=format_time(now),
        )
        begin = [] if started else [anchor(SESSION_START, {"owner": "human"}, ts=since)]
        before = [*begin, parcel.event(digest), *history]
        first = version + 1 + len(before)
        entries = [*before, *imported_session.entries]
        if memory:
            home = _home(imported_session.session)
            entries += [scope_entry(home)] if home != imported_session.session else []
            entries += zone_entries(snapshot, format_time(now))
        if parcel.person:
            entries.append(scope_entry(person_scope_of(parcel.person)))
        if imported_session.consolidated_count:
            entries.append(_settled(imported_session, first, snapshot if memory else current))
        entries.append(_boundary(parcel, version + 1, version + len(entries), first))
        return [entry.with_meta(origin=f"import:{parcel.bot}") for entry in entries]


def _differs(parcel: _SessionImport, known: TapeEntry) -> ImportResult:
    """Return the outcome for a session that was imported in another form before."""
    session, before = parcel.one.session, known.data
    if not parcel.person or before.get("for") != parcel.person:
        bot, person = before.get("from"), before.get("for")
        text = (
            _(
                "already has a different or shorter import from {bot} for {person}",
                bot=bot,
                person=person,
            )
            if person
            else _("already has a different or shorter import from {bot}", bot=bot)
        )
        return ImportResult(session, "refused", _("{text}; left unchanged", text=text))
    text = _(
        "had {before} messages when it was imported and has {messages} now",
        before=before.get("messages"),
        messages=parcel.messages,
    )
    return ImportResult(session, "changed", _("{text}; left unchanged", text=text))


def _boundary(parcel: _SessionImport, first: int, last: int, spoken: int) -> TapeEntry:
    """Return the anchor after the imported entries."""
    state: dict[str, Any] = {
        **summary_state("", _heading(parcel)),
        "next_steps": [],
        "source": [first, last],
        "owner": "human",
        "reason": Reason("imported_from", bot=parcel.bot).as_json(),
    }
    if parcel.person and not parcel.is_read:
        times = [str(entry.meta["ts"]) for entry in parcel.one.entries]
        state["conversation"] = {
            "for": parcel.person,
            "since": min(times),
            "until": max(times),
            "messages": parcel.messages,
            "last": spoken + len(parcel.one.entries) - 1,
        }
    return anchor(SESSION_IMPORTED, state)


def _home(session: str) -> str:
    """Return the tape of a session's facts, judging by the session's key."""
    if is_private(session) is not True:
        return session
    address = Address.parse(session)
    return person_scope(address.channel, address.chat_id)


def _settled(imported_session: ImportedSession, first: int, zone: MemorySnapshot) -> TapeEntry:
    """Return the anchor that marks entries as consolidated; ``first`` is the first entry's id."""
    settled = imported_session.entries[: imported_session.consolidated_count]
    state = {
        "through": first + imported_session.consolidated_count - 1,
        "version": zone.version,
        "messages": sum(entry.kind == "message" for entry in settled),
        "tokens": sum(map(entry_tokens, settled)),
    }
    return anchor(MEMORY_CONSOLIDATED, state)


def _told(parcel: _SessionImport) -> str:
    imported_session, memory = parcel.one, parcel.memory
    said = []
    if imported_session.entries:
        said.append(ngettext("{n} message", "{n} messages", parcel.messages))
    if memory.long_term:
        said.append(_("memory"))
    if history := len(memory.history) + len(imported_session.history):
        said.append(ngettext("{n} history event", "{n} history events", history))
    if memory.notes:
        said.append(ngettext("{n} daily note", "{n} daily notes", len(memory.notes)))
    text = ", ".join(said)
    if imported_session.key in ("", imported_session.session):
        return text
    return _("{text} (was {key})", text=text, key=imported_session.key)


def _heading(parcel: _SessionImport) -> Reason:
    """Return what the boundary says of the imported conversation."""
    entries, bot, kept = parcel.one.entries, parcel.bot, parcel.memory.long_term
    if not entries:
        return Reason("brought_over_memory" if kept else "brought_over", bot=bot)
    code = "brought_over_all" if kept else "brought_over_talk"
    code += "" if parcel.person else "_recalled"
    since, until = (str(entry.meta.get("ts"))[:10] for entry in (entries[0], entries[-1]))
    return Reason(code, bot=bot, messages=parcel.messages, since=since, until=until)
