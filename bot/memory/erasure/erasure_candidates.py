"""Collect what an erasure would remove, from every tape that a person's memory cites.

Tapes are read from end to end in batches and matched in a thread: the event loop stays free, and
only one batch and the matches are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from bot.bus import MCP_CHANNEL
from bot.core.errors import TapeNotFound
from bot.memory.erasure.affected_records import (
    NO_AFFECTED_RECORDS,
    AffectedRecordCounts,
    AffectedRecordKey,
    find_affected_records,
)
from bot.memory.erasure.bus_scrubber import BusScrubber
from bot.memory.erasure.entry_matcher import ErasureMatcher, ErasureRights
from bot.memory.erasure.erasure_plan import (
    ErasurePlan,
    RetainedContent,
    SourceTape,
    with_beliefs,
)
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import normalize_for_match, pad_words
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.imports import assistant_of
from bot.memory.session.file_folder import folder_tapes
from bot.memory.session.linking.scope_registry import (
    PERSON_SCOPE_PREFIX,
    WORKSPACE_SCOPE,
    is_shared_scope,
)
from bot.memory.session.long_term_memory import LongTermMemory, named_home
from bot.memory.session.scope.identities import WORKSPACE_PREFIX, channel_of
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """The result of a search: what an erasure would remove, and the plan that removes it.

    Attributes:
        plan: The replacement of each entry.
        sources: The tapes that the erasure goes through.
        facts: Facts of the home scope that would be erased, by number.
        ended: Numbers of ended facts that are erased only because they repeat the erased text.
        facts_of_same_message: Facts that stay, and cite a message that loses text or is erased.
        listed_messages: The first messages that would be erased.
        message_locations: Tape and id of each listed message.
        message_count: Number of messages and files that would be erased.
        file_count: Number of files among these.
        affected_records: Numbers of records of the memory bus that lose text.
        repeated: Number of other entries that hold all the words of the query.
        not_permitted_count: Number of matching facts and messages that the person may not erase.
        blobs: Files attached to the erased messages, and pages that tools kept; those that another
            entry refers to stay.
        lines: Lines of the erased messages and facts as written.
        redactions: Remaining texts of the messages that lose only some sentences, by tape and id,
            without the request.
        redacted_by_words: Number of these that no erased fact cites; they hold the words of the
            query.
        redacted_messages: The first of these messages.
        unredactable_count: Number of messages that should lose only some sentences but are erased
            whole.
        facts_without_evidence: Facts that stay although all their evidence is erased.
        ended_without_evidence: Ended facts whose evidence is all erased, so that undo does not
            bring them back.
    """

    plan: ErasurePlan
    sources: tuple[SourceTape, ...]
    facts: tuple[Fact, ...] = ()
    ended: frozenset[int] = frozenset()
    facts_of_same_message: tuple[Fact, ...] = ()
    listed_messages: tuple[TapeEntry, ...] = ()
    message_locations: tuple[tuple[str, int], ...] = ()
    message_count: int = 0
    file_count: int = 0
    affected_records: AffectedRecordCounts = NO_AFFECTED_RECORDS
    repeated: int = 0
    not_permitted_count: int = 0
    blobs: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()
    redactions: Mapping[tuple[str, int], str] = field(default_factory=dict)
    redacted_by_words: int = 0
    redacted_messages: Mapping[tuple[str, int], TapeEntry] = field(default_factory=dict)
    unredactable_count: int = 0
    facts_without_evidence: tuple[Fact, ...] = ()
    ended_without_evidence: tuple[Fact, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found except the request itself."""
        believed = any(fact.gloss for fact in self.plan.facts.values())
        return not (
            believed
            or self.message_count
            or self.redactions
            or self.affected_records
            or self.repeated
        )


@dataclass(slots=True)
class CandidateCollector:
    """Search the tapes for what a person wants erased.

    Attributes:
        memory: Memory of the session in which the person asks.
        rights: What the person may erase.
        owner: The person owns the bot, so the workspace's facts and records are searched, too.
    """

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

        Args:
            query: The query.
            entry: The entry of the session's tape that made the request: a command or a tool call.
            asking: Platform ids of the messages that led to the request.

        Raises:
            TapeError: A tape cannot be read.
        """
        home = self.memory.home
        await home.open()
        finding = ErasureMatcher(query, self.rights, home.name, request_message_ids=set(asking))
        if entry is not None:
            self._note_request(finding, entry)
        scopes = await self._scopes()
        for scope, facts in scopes.items():
            finding.choose_facts(scope, facts)
        self._choose_shared(finding, scopes)
        sources = await self._sources(scopes[home.name])
        await self._find(finding, sources)
        if self._is_everybodys(finding):
            names = {source_tape.name for source_tape in sources}
            others = [one for one in await self.store.list_tapes() if one not in names]
            # The workspace's other tapes hold ids, names and numbers only, no text to erase.
            others = [
                one
                for one in others
                if one == WORKSPACE_SCOPE or not one.startswith(WORKSPACE_PREFIX)
            ]
            sources += [SourceTape(one, own=False) for one in others]
        return await self._plan(finding, sources, scopes)

    def _is_everybodys(self, finding: ErasureMatcher) -> bool:
        """Return whether a workspace fact or record is erased: every tape may repeat these."""
        if any(one[0] == WORKSPACE_SCOPE for one in (*finding.facts, *finding.affected_records)):
            return True
        scrubber = BusScrubber(Scrubber(finding.matcher, finding.query))
        known = self.memory.workspace.compartments.state() if self.owner else {}
        return any(find_affected_records(WORKSPACE_SCOPE, known, scrubber))

    def _note_request(self, finding: ErasureMatcher, entry: TapeEntry) -> None:
        tape = self.memory.tape.name
        finding.request_location = (tape, entry.id)
        if isinstance(inbound := entry.meta.get("inbound"), str):
            finding.request_message_ids.add(inbound)
        if isinstance(turn := entry.meta.get("turn"), str):
            finding.request_turn = turn
            finding.turns.setdefault(tape, set()).add(turn)
        finding.inbound.setdefault(tape, set()).update(finding.request_message_ids)

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

    def _choose_shared(
        self, finding: ErasureMatcher, scopes: dict[str, Mapping[int, Fact]]
    ) -> None:
        """Choose the copies of chosen facts in the workspace and in linked identities' scopes."""
        texts = {
            pad_words(normalize_for_match(other.gloss))
            for other in finding.facts.values()
            if other.gloss
        }
        joint = [f"{PERSON_SCOPE_PREFIX}{identity}" for identity in self._identities()]
        for scope in {WORKSPACE_SCOPE, *joint} - {self.memory.home.name}:
            for fact in scopes.get(scope, {}).values():
                if fact.gloss and pad_words(normalize_for_match(fact.gloss)) in texts:
                    finding.add_fact(scope, fact)

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

    async def _find(self, finding: ErasureMatcher, sources: list[SourceTape]) -> None:
        for _ in range(_ROUNDS):
            finding.needs_another_pass = False
            names = {source_tape.name for source_tape in sources}
            for source in sources:

                def look(entry: TapeEntry, source: SourceTape = source) -> None:
                    finding.match_entry(source.name, entry, source.origins_of(entry.id))

                await visit_entries(self.store, source.name, look)
            if not finding.needs_another_pass:
                return
            known = set(await self.store.list_tapes())
            new = {tape for tape, _ in finding.evidence if tape in known} - names
            sources += [SourceTape(one, self._origins(one)) for one in sorted(new)]

    async def _plan(
        self,
        finding: ErasureMatcher,
        sources: list[SourceTape],
        scopes: dict[str, Mapping[int, Fact]],
    ) -> ErasurePreview:
        survivors = RetainedContent(finding, finding.matcher.copy())
        for source in sources:
            await visit_entries(self.store, source.name, partial(survivors.retain_entry, source))
        kept: list[str] = []
        for scope, facts in scopes.items():
            kept += survivors.retain_facts(scope, facts.values())
        chosen = set(finding.facts)
        for scope, facts in scopes.items():
            survivors.release_ended_facts(scope, facts.values())
        everything = self.rights.everything and not finding.keeps_something
        plan = ErasurePlan(
            facts=dict(finding.facts),
            messages=frozenset(finding.messages),
            turns={tape: frozenset(turns) for tape, turns in finding.turns.items()},
            matcher=survivors.wording,
            query=finding.query if everything else ErasureQuery(),
            kept=tuple(kept),
            redactions=dict(finding.redactions),
            redactor=finding.redactor if finding.redactions else None,
            scrubs_records=not finding.kept.keeps_records,
            request=finding.request_location if finding.request_location[1] else None,
            erased=frozenset(survivors.erased),
        )
        plan, lost = with_beliefs(plan, sources, survivors.folds)
        facts = scopes[self.memory.home.name]
        return self._preview(finding, plan, sources, facts=facts, chosen=chosen, lost=lost)

    def _preview(
        self,
        finding: ErasureMatcher,
        plan: ErasurePlan,
        sources: list[SourceTape],
        *,
        facts: Mapping[int, Fact],
        chosen: set[tuple[str, int]],
        lost: set[AffectedRecordKey],
    ) -> ErasurePreview:
        """Return the preview of a plan.

        Args:
            finding: The matches.
            plan: The plan.
            sources: The tapes that it goes through.
            facts: All facts of the home scope, by number.
            chosen: Scope and number of the facts that were chosen before ended ones were added.
            lost: The records of the memory bus that lose text.
        """
        home, query = self.memory.home.name, finding.query
        gone = {number: fact for (scope, number), fact in finding.facts.items() if scope == home}
        bare = [
            fact
            for number, fact in sorted(facts.items())
            if number not in gone and _loses_all_evidence(fact, finding)
        ]
        redactions = {
            place: left
            for place, left in finding.redactions.items()
            if place not in finding.requests
        }
        return ErasurePreview(
            plan,
            tuple(sources),
            facts=tuple(fact for _, fact in sorted(gone.items()) if fact.gloss),
            ended=frozenset({one for one in gone if (home, one) not in chosen} | query.ended_facts),
            facts_of_same_message=tuple(
                fact
                for number, fact in sorted(facts.items())
                if number not in gone and self._shares_message(fact, finding)
            ),
            listed_messages=tuple(finding.listed_messages.values()),
            message_locations=tuple(finding.listed_messages),
            message_count=finding.message_count,
            file_count=finding.file_count,
            affected_records=AffectedRecordCounts.count(lost | finding.affected_records),
            repeated=len(finding.repeated) if self.rights.everything else 0,
            not_permitted_count=len(finding.not_permitted),
            blobs=frozenset(finding.blobs),
            lines=frozenset(finding.lines),
            redactions=redactions,
            redacted_by_words=len(redactions.keys() - finding.evidence),
            redacted_messages=finding.redacted_messages,
            unredactable_count=len(finding.unredactable),
            facts_without_evidence=tuple(
                fact for fact in bare if fact.status in ("active", "pending")
            ),
            ended_without_evidence=tuple(
                fact for fact in bare if fact.status not in ("active", "pending")
            ),
        )

    def _shares_message(self, fact: Fact, finding: ErasureMatcher) -> bool:
        """Return whether a fact cites a message that is erased or redacted, besides the request."""
        if fact.status not in ("active", "pending") or not self.rights.may_erase_fact(fact):
            return False
        cited = {(evidence.tape, evidence.entry) for evidence in fact.evidence} - finding.requests
        return any(place in finding.messages or place in finding.redactions for place in cited)


def _loses_all_evidence(fact: Fact, finding: ErasureMatcher) -> bool:
    """Return whether an erasure takes the last words that a fact rests on."""
    said = [evidence for evidence in fact.evidence if evidence.quote]
    return bool(fact.gloss and said) and all(_loses_words(one, finding) for one in said)


def _loses_words(evidence: Evidence, finding: ErasureMatcher) -> bool:
    place = (evidence.tape, evidence.entry)
    left = finding.redactions.get(place)
    redacted = left is not None and not finding.redactor.redact_quote(evidence.quote, left)
    return redacted or place in finding.messages


async def visit_entries(
    store: TapeStore,
    tape: str,
    look: Callable[[TapeEntry], object],
    first: int = 1,
    through: int | None = None,
) -> int:
    """Call a function in a thread with each entry of a tape, oldest first; return the last id.

    Args:
        store: The store that holds the tape.
        tape: Name of the tape; a missing tape counts as empty.
        look: Called with each entry.
        first: The first id.
        through: The last id; by default the newest.
    """
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
