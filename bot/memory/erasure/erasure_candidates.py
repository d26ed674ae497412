"""Collect what an erasure would remove, from every tape that a person's memory cites.

Tapes are read from end to end in batches and matched in a thread: the event loop stays free, and
only one batch and the matches are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.to_thread

from bot.bus import MCP_CHANNEL
from bot.core.errors import TapeNotFound
from bot.memory.erasure.closure import Closure, ErasureRights, SourceTape
from bot.memory.erasure.erasure_query import ALL_FOUND, EntryLocation, ErasureQuery
from bot.memory.erasure.persons_entries import is_persons_entry
from bot.memory.erasure.record_eraser import RecordEraser, count_records, find_affected_records
from bot.memory.records.fact import Fact
from bot.memory.records.imports import assistant_of
from bot.memory.records.tombstones import is_erased
from bot.memory.session.file_folder import folder_tapes
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.long_term_memory import LongTermMemory, named_home
from bot.memory.session.scope.identities import (
    PERSON_SCOPE_PREFIX,
    WORKSPACE_PREFIX,
    channel_of,
    is_shared_scope,
)
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore

_ROUNDS = 8
_NEAR = 4
_SEARCHED = 20


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """The result of a search: what an erasure would remove, and the closure that removes it."""

    closure: Closure
    sources: tuple[SourceTape, ...]
    facts: tuple[Fact, ...] = ()
    facts_of_same_message: tuple[Fact, ...] = ()
    listed_messages: Mapping[EntryLocation, TapeEntry] = field(default_factory=dict)
    near: Mapping[EntryLocation, TapeEntry] = field(default_factory=dict)
    affected_records: tuple[int, int, int] = (0, 0, 0)
    facts_without_evidence: tuple[Fact, ...] = ()

    @property
    def message_count(self) -> int:
        """Number of messages and files that would be erased."""
        return self.closure.message_count

    @property
    def repeated(self) -> int:
        """Number of other entries that hold all the words of the query."""
        return len(self.closure.repeated) if self.closure.rights.everything else 0

    @property
    def not_permitted_count(self) -> int:
        """Number of matching facts and messages that the person may not erase."""
        return len(self.closure.not_permitted)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found except the request itself."""
        believed = any(fact.gloss for fact in self.closure.facts.values())
        return not (believed or self.message_count or any(self.affected_records) or self.repeated)


@dataclass(slots=True)
class CandidateCollector:
    """Search the tapes for what a person wants erased."""

    memory: LongTermMemory
    rights: ErasureRights
    owner: bool = False
    _copied: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def store(self) -> TapeStore:
        """The store of the session's tape."""
        return self.memory.tape.store

    async def collect(
        self, query: ErasureQuery, entry: TapeEntry | None = None, asking: Iterable[str] = ()
    ) -> ErasurePreview:
        """Find what would be erased, without changing anything.

        Raises:
            TapeError: A tape cannot be read.
        """
        home = self.memory.home
        await home.open()
        closure = Closure(query, self.rights, home.name, request_message_ids=set(asking))
        if entry is not None:
            self._note_request(closure, entry)
        scopes = await self._scopes()
        closure.choose_facts(scopes)
        sources = await self._sources(scopes[home.name])
        await self._find(closure, sources)
        if self._is_everybodys(closure):
            names = {source.name for source in sources}
            # The workspace's other tapes hold ids, names and numbers only, no text to erase.
            sources += [
                SourceTape(one, own=False)
                for one in await self.store.list_tapes()
                if one not in names
                and (one == WORKSPACE_SCOPE or not one.startswith(WORKSPACE_PREFIX))
            ]
        for source in sources:
            await visit_entries(self.store, source.name, partial(closure.retain_entry, source))
        closure.settle(scopes, sources)
        preview = self._preview(closure, sources, scopes[home.name])
        words = [*query.words, *(phrase.strip() for phrase in query.phrases)]
        said = preview.facts or preview.message_count
        if not said and query.picked is ALL_FOUND and len(words) > 1:
            return replace(preview, near=await self._near(preview, " ".join(words)))
        return preview

    def _preview(
        self, closure: Closure, sources: list[SourceTape], facts: Mapping[int, Fact]
    ) -> ErasurePreview:
        home = self.memory.home.name
        gone = {number for scope, number in closure.facts if scope == home}
        stay = [
            fact
            for number, fact in sorted(facts.items())
            if number not in gone and fact.status in ("active", "pending") and fact.gloss
        ]
        bare = [fact for fact in stay if closure.loses_quotes(fact)]
        beside = [fact for fact in stay if fact not in bare and _shares_message(fact, closure)]
        return ErasurePreview(
            closure,
            tuple(sources),
            facts=tuple(facts[number] for number in sorted(gone) if facts[number].gloss),
            facts_of_same_message=tuple(filter(self.rights.may_erase_fact, beside)),
            listed_messages=closure.listed,
            affected_records=count_records(closure.affected_records),
            facts_without_evidence=tuple(bare),
        )

    async def _near(self, preview: ErasurePreview, text: str) -> dict[EntryLocation, TapeEntry]:
        """Return people's messages that the store's search finds for a text, best first."""
        tapes, closure = tuple(source.name for source in preview.sources), preview.closure
        kinds = frozenset({"message"})
        query = SearchQuery(text, tapes=tapes, kinds=kinds, limit=_SEARCHED, without_assistant=True)
        found = [
            hit
            for hit in await self.store.search(query)
            if hit.direct
            and is_persons_entry(hit.entry)
            and not is_erased(hit.entry)
            and not closure.is_request(hit.tape, hit.entry)
            and self.rights.may_erase_message(hit.tape, hit.entry)
        ]
        return {(hit.tape, hit.entry.id): hit.entry for hit in found[:_NEAR]}

    def _is_everybodys(self, closure: Closure) -> bool:
        """Return whether a workspace fact or record is erased: every tape may repeat these."""
        if any(one[0] == WORKSPACE_SCOPE for one in (*closure.facts, *closure.affected_records)):
            return True
        known = self.memory.workspace.compartments.state() if self.owner else {}
        return any(find_affected_records(WORKSPACE_SCOPE, known, RecordEraser(closure.matcher)))

    def _note_request(self, closure: Closure, entry: TapeEntry) -> None:
        tape = self.memory.tape.name
        closure.request = (tape, entry.id)
        if isinstance(inbound := entry.meta.get("inbound"), str):
            closure.request_message_ids.add(inbound)
        if isinstance(turn := entry.meta.get("turn"), str):
            closure.request_turn = turn
            closure.turns.setdefault(tape, set()).add(turn)

    async def _scopes(self) -> dict[str, Mapping[int, Fact]]:
        home = self.memory.home
        found: dict[str, Mapping[int, Fact]] = {home.name: dict(home.fold.facts)}
        for identity in self._identities():
            # Each identity's scope keeps its facts from before the link; unlinking restores them.
            before = self.memory.scopes.identity_scope(identity)
            await before.open()
            found.setdefault(before.name, dict(before.fold.facts))
        own = self.memory.fold.facts
        if own.facts:
            found.setdefault(self.memory.tape.name, dict(own.facts))
        if self.owner:
            await self.memory.workspace.open()
            found[WORKSPACE_SCOPE] = dict(self.memory.workspace.fold.facts)
        return found

    def _identities(self) -> tuple[str, ...]:
        """Return all identities of the person that the home scope belongs to."""
        return self.memory.scopes.identities(self.memory.home.name)

    async def _sources(self, facts: Mapping[int, Fact]) -> list[SourceTape]:
        """Return the tapes to search, the home scope first: its records name the evidence."""
        home, session = self.memory.home.name, self.memory.tape.name
        names = [home, session]
        names += [evidence.tape for fact in facts.values() for evidence in fact.evidence]
        if self.owner:
            names.append(WORKSPACE_SCOPE)
        known = await self.store.list_tapes()
        for identity in self._identities():
            theirs = PERSON_SCOPE_PREFIX + identity
            begins = f"{channel_of(identity)}:"
            others = [one for one in known if one.startswith(begins) and not is_shared_scope(one)]
            # A chat that was not used since the identities were linked still names its old scope.
            others += [one for one in known if assistant_of(one) or channel_of(one) == MCP_CHANNEL]
            names += [one for one in others if await named_home(self.store, one) in (home, theirs)]
            names.append(theirs)
        # Last: what a file repeats is known by then.
        names += folder_tapes(self.memory)
        wanted = set(names) & set(known)
        await self._follow_forks(known, wanted)
        ordered = [fromkey for fromkey in dict.fromkeys(names) if fromkey in wanted]
        ordered += sorted(wanted.difference(ordered))
        return [SourceTape(one, self._origins(one)) for one in ordered]

    async def _follow_forks(self, known: list[str], wanted: set[str]) -> None:
        """Add the forks of the tapes, and the forks of those."""
        for tape in known:
            try:
                anchors = await self.store.list_anchors(tape)
            except TapeNotFound:
                continue
            for anchor in anchors:
                source = anchor.state.get("source")
                if anchor.parent is not None and isinstance(source, list) and len(source) == 2:
                    last = source[1] if type(source[1]) is int else anchor.at
                    self._copied[tape] = (anchor.parent, last)
        grown = True
        while grown:
            more = {one for one, (parent, _) in self._copied.items() if parent in wanted}
            grown = not more <= wanted
            wanted |= more

    def _origins(self, tape: str) -> tuple[tuple[str, int], ...]:
        found: list[tuple[str, int]] = []
        while tape in self._copied and len(found) < _ROUNDS:
            parent, last = self._copied[tape]
            found.append((parent, min([last, *(one for _, one in found)])))
            tape = parent
        return tuple(found)

    async def _find(self, closure: Closure, sources: list[SourceTape]) -> None:
        for _ in range(_ROUNDS):
            closure.needs_another_pass = False
            names = {source.name for source in sources}
            for source in sources:
                await visit_entries(self.store, source.name, partial(closure.match_entry, source))
            if not closure.needs_another_pass:
                return
            known = set(await self.store.list_tapes())
            new = {tape for tape, _ in closure.evidence if tape in known} - names
            sources += [SourceTape(one, self._origins(one)) for one in sorted(new)]


def _shares_message(fact: Fact, closure: Closure) -> bool:
    """Return whether a fact cites a message that is erased, but for the one that asks."""
    return not closure.messages.isdisjoint({one.place for one in fact.evidence} - closure.uncounted)


async def visit_entries(
    store: TapeStore,
    tape: str,
    look: Callable[[TapeEntry], object],
    first: int = 1,
    through: int | None = None,
) -> int:
    """Call a function in a thread with each entry of a tape, oldest first; return the last id."""
    done = first - 1
    with suppress(TapeNotFound):
        async with aclosing(read_batches(store, tape, first, through)) as parts:
            async for entries in parts:
                await anyio.to_thread.run_sync(_look, look, entries)
                done = entries[-1].id if entries else done
    return done


def _look(look: Callable[[TapeEntry], object], piece: list[TapeEntry]) -> None:
    for entry in piece:
        look(entry)
