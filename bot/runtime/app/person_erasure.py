"""Erase everything of a person: conversations, facts, files, access, and what they said in groups.

Rule 1: access goes first, so that nothing new comes; then copies, then what they were made from.
Rule 2: whatever a kill interrupts, running it again finds and erases the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bot.core.errors import MemoryRefused
from bot.core.i18n import _, ngettext
from bot.core.reasons import reason_text
from bot.inspector.access.login_store import LoginStore
from bot.memory.erasure.closure import Closure, ErasureRights, is_turn_output
from bot.memory.erasure.erasure_candidates import CandidateCollector, visit_entries
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.persons_entries import blobs_in, is_persons_entry, message_texts
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.files import FILES_PREFIX
from bot.memory.records.imports import IMPORTED_EVENT, assistant_of
from bot.memory.records.schedules import read_schedule
from bot.memory.records.tombstones import (
    ERASED_TEXT,
    entry_digest,
    is_erased,
    tombstone,
    written_at,
)
from bot.memory.records.transcript import sender_id
from bot.memory.records.turn_marks import unfold
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.identities import (
    IDENTITIES_TAPE,
    PERSON_SCOPE_PREFIX,
    identity_at,
    is_shared_scope,
)
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.app.build import App
from bot.runtime.sessions.derived_files import BUSY, suspend_files
from bot.runtime.sessions.erasure import Eraser
from bot.runtime.sessions.session_reset import reset_session
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService


@dataclass(slots=True)
class PersonsData:
    """What is there of a person.

    Attributes:
        people: Their linked identities.
        conversations: Tapes that are theirs alone.
        memories: Tapes of their facts and files.
        said: Ids of what they said and set, by tape; none of what is erased, where only their name is left.
        facts: How many facts are believed of them.
        blobs: Files that nobody else has.
    """

    people: frozenset[str]
    conversations: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    said: dict[str, list[int]] = field(default_factory=dict)
    facts: int = 0
    blobs: set[str] = field(default_factory=set)

    def text(self) -> str:
        """Return what would be erased, as a sentence."""
        groups = {tape for tape, said in self.said.items() if said} - {*self.conversations}
        return _(
            "{person}: {conversations}, {messages}, {facts}; messages of theirs in {groups}; their files, "
            "schedules, access, logins and tokens.",
            person=", ".join(sorted(self.people)),
            conversations=ngettext(
                "{n} conversation", "{n} conversations", len(self.conversations)
            ),
            messages=ngettext("{n} message", "{n} messages", sum(map(len, self.said.values()))),
            facts=ngettext("{n} fact", "{n} facts", self.facts),
            groups=ngettext("{n} group", "{n} groups", len(groups)),
        )


async def answer(app: App, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ``tapebot memory erase``: show what would go; with ``yes``, erase it."""
    found = await find_persons_data(app, str(request.get("person", "")))
    if request.get("yes") is True:
        await erase_person(app, found)
    return {"ok": True, "text": found.text()}


async def find_persons_data(app: App, person: str) -> PersonsData:
    """Find what is there of a person, given one of their identities, such as ``telegram:42``."""
    store, scopes = app.store, app.services.scopes
    await scopes.identity_linker.open()
    people = frozenset(scopes.identity_linker.people.members(person))
    homes = {f"{PERSON_SCOPE_PREFIX}{one}" for one in people}
    found = PersonsData(people)
    known = await store.list_tapes()
    for tape in known:
        if tape in homes or tape.removeprefix(FILES_PREFIX) in homes:
            found.memories.append(tape)
        elif not is_shared_scope(tape) and await _belongs_to(app, tape, people, homes):
            found.conversations.append(tape)
    others: set[str] = set()
    for tape in known:
        await visit_entries(store, tape, partial(_note, found, others, tape))
    found.blobs -= others
    for home in sorted(homes & set(known)):
        scope = scopes.person(home)
        await scope.open()
        found.facts += len(scope.fold.active())
    return found


def _note(found: PersonsData, others: set[str], tape: str, entry: TapeEntry) -> None:
    """Note an entry if it is theirs, and whose files it names."""
    own = tape in found.conversations or tape in found.memories
    schedule = read_schedule(entry)
    sender = schedule.author.id if schedule is not None else sender_id(entry)
    theirs = own or identity_at(tape, sender) in found.people
    kept = entry.data.get("blob") if entry.kind == "event" else None
    files = blobs_in(entry) | ({kept} if isinstance(kept, str) else set())
    (found.blobs if theirs else others).update(files)
    said = is_persons_entry(entry) or schedule is not None
    if said and theirs and not is_shared_scope(tape):
        found.said.setdefault(tape, []).extend(() if is_erased(entry) else (entry.id,))


async def erase_person(app: App, found: PersonsData) -> None:
    """Erase all of a person's data, physically.

    Raises:
        MemoryRefused: A conversation of theirs is at work; call again later.
        TapeError: The storage refused; calling again continues from there.
        BusError: The access list or the bus's journal could not be written; calling again continues.
    """
    store, services = app.store, app.services
    for person in found.people:
        await app.access_control.remove(person)
    logins = LoginStore(store, services.agent.clock)
    await logins.end_logins(lambda login: login.visitor in found.people)
    for token in await logins.tokens():
        if token.visitor in found.people:
            await logins.end_token(token.visitor, token.name)
    # Before what names them: after a kill nothing else would.
    await services.erase_residual_files(TextMatcher(), found.blobs)
    folders = [tape for tape in found.memories if tape.startswith(FILES_PREFIX)]
    await _reset(app, folders)
    own = [tape for tape in found.conversations if found.said.get(tape)]
    groups = [tape for tape in found.said if tape not in found.conversations]
    for tape in groups:
        await _erase_quotes(app, found, tape)
    for tape in (*own[:1], *(one for one in groups if found.said[one])):
        await _erase_said(app, found, tape, own if tape in own else [tape])
    local = {one.partition(":")[2] for one in found.people}
    for tape in groups:
        await _erase_names(app, tape, local)
    if IDENTITIES_TAPE in await store.list_tapes():
        await _erase_names(app, IDENTITIES_TAPE, found.people)
    for tape in found.conversations:
        at, files = await store.version(tape), services.derived_files
        await _note_reset(app, tape)
        await reset_session(
            store, tape, services.scopes, expect=at, archive=False, vectors=app.vectors, files=files
        )
    await _reset(app, [tape for tape in found.memories if tape not in folders])


async def _reset(app: App, tapes: Collection[str]) -> None:
    scopes, files = app.services.scopes, app.services.derived_files
    async with scopes.session_locks.erasure_lock, suspend_files(files, tapes):
        for tape in tapes:
            await _note_reset(app, tape)
            await app.store.reset(tape)
        for scope in scopes.open_scopes():
            if scope.name in tapes:
                async with scope.tape.block_writes():
                    await scope.reload()


async def _note_reset(app: App, tape: str) -> None:
    if app.services.note_erased is not None:
        last = await app.store.version(tape)
        times = [written_at(one) for one in await app.store.read(tape, last, last)]
        app.services.note_erased(tape, reset=True, newest=max(times, default=""))


async def _erase_quotes(app: App, found: PersonsData, tape: str) -> None:
    """Erase what others quote of them in a group, and the answers to that."""
    words, asked, turns = TextMatcher(), set[object](), set[object]()
    quoting, outputs = list[TapeEntry](), dict[object, int]()
    ids = (one.partition(":")[2] for one in found.people)
    marks = {f"({one}):" for one in ids if identity_at(tape, one) in found.people}

    def look(entry: TapeEntry) -> None:
        quote, turn = f" {entry.meta.get('quote') or ''}", entry.meta.get("turn")
        if is_persons_entry(entry) and identity_at(tape, sender_id(entry)) in found.people:
            if name := entry.meta["sender"].get("name"):
                marks.update((f" {name}:", f'"{name}":'))
            for text in message_texts(entry):
                words.add_passage(text)
        elif words.holds([quote]) or any(mark in quote for mark in marks):
            quoting.append(replace(entry, meta={**entry.meta, "quote": ERASED_TEXT}))
            asked.add(entry.meta.get("inbound"))
        elif isinstance(turn, str) and is_turn_output((turn,), entry) and not is_erased(entry):
            outputs[turn] = entry.id
        told = unfold(entry)[-1].data
        if isinstance(sent := told.get("inbound"), list) and not asked.isdisjoint(sent):
            turns.add(told.get("turn"))

    await visit_entries(app.store, tape, look)
    if answers := sorted(outputs[turn] for turn in turns & outputs.keys()):
        # First, as the quotes tell which these are; without the person, so that no fact goes yet.
        await _erase_said(app, PersonsData(frozenset(), said={tape: answers}), tape, [tape])
    if app.services.note_erased is not None and quoting:
        parts, newest = (
            {one.id: entry_digest(one) for one in quoting},
            max(map(written_at, quoting)),
        )
        app.services.note_erased(tape, parts=parts, newest=newest)
    await app.store.erase(tape, quoting)


async def _erase_said(app: App, found: PersonsData, tape: str, tapes: list[str]) -> None:
    """Erase what they said on some tapes, with what repeats it, as the owner of these words may."""
    services = app.services
    service = TapeService(app.store, tape)
    fold = await load_fold(service)
    zone = MemoryZone(service, clock=services.agent.clock, fold=fold.zone)
    memory = LongTermMemory(service, fold, zone, services.scopes)
    await memory.open()
    private = tape in found.conversations
    rights = ErasureRights(private, found.people)
    known = memory.home.fold.facts
    facts = frozenset(number for number in known if rights.may_erase_fact(known[number]))
    said = frozenset((one, entry) for one in tapes for entry in found.said[one])
    query = ErasureQuery(facts=facts, entries=said)
    collector = CandidateCollector(memory, ErasureRights(True, found.people), owner=private)
    doors = (services.scopes, services.bus.lock_session, services.erase_residual_files)
    files, note = services.derived_files, services.note_erased
    eraser = Eraser(collector, *doors, app.vectors, files, note)
    [request] = await app.store.read(tape, found.said[tape][-1], found.said[tape][-1])
    # Without its links it is no request: it only goes last.
    result = await eraser.erase(query, replace(request, meta={}), (frozenset(known), 1 << 40))
    if isinstance(result, Closure):
        raise MemoryRefused(reason_text(BUSY))


async def _erase_names(app: App, tape: str, ids: Collection[str]) -> None:
    """Take their display name from what is left of their messages, and from evidence."""
    nameless: list[TapeEntry] = []

    def look(entry: TapeEntry) -> None:
        if entry.kind == "system":
            # Prompts say who is in a group, each with the id.
            told = str(entry.payload.get("content"))
            if any(f" ({one})" in told for one in ids):
                nameless.append(tombstone(entry))
            return
        payload, meta = _without_name(entry.payload, ids), _without_name(entry.meta, ids)
        if (payload, meta) != (entry.payload, entry.meta):
            nameless.append(replace(entry, payload=payload, meta=meta))

    await visit_entries(app.store, tape, look)
    await app.store.erase(tape, nameless)


def _without_name(value: Any, ids: Collection[str]) -> Any:
    if isinstance(value, list):
        return [_without_name(one, ids) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _without_name(one, ids) for key, one in value.items()}
    if "name" in found and str(found.get("id") or found.get("who")) in ids:
        found["name"] = ""
    if "who" in found and str(found.get("sender")) in ids:
        found["who"] = found["sender"]
    return found


async def _belongs_to(app: App, tape: str, people: Collection[str], homes: Collection[str]) -> bool:
    service = TapeService(app.store, tape)
    if (await load_fold(service)).home_scope in homes:
        return True
    # An erasure that a kill ended has opened an imported tape as its channel's own.
    entries = await service.read_entries() if assistant_of(tape) else ()
    return any(one.data.get("for") in people for one in entries if one.name == IMPORTED_EVENT)
