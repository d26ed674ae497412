"""A session's long-term memory: the facts of its home scope, rendered into its zone.

A change takes two steps: first the facts, on the scope's tape, then the zone, on the session's.
Each change has a key, so that a retry after a crash between the two has no second effect. The zone
is brought up to date with the facts whenever it is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused, TapeNotFound
from bot.core.i18n import N_, _
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.records.compartment_text import render_references
from bot.memory.records.conversation_entries import is_remote_command
from bot.memory.records.evidence import cite
from bot.memory.records.fact import Fact, newer_first
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalBatch
from bot.memory.records.transcript import format_timestamp_day, sender_id
from bot.memory.session.bus.memory_bus import MemoryBus
from bot.memory.session.bus.semantic_synthesis import render_prompt_beliefs
from bot.memory.session.bus.shared_reference import (
    readable_references,
)
from bot.memory.session.bus.working_set import expiring_assumption
from bot.memory.session.linking.memory_split import joining_facts
from bot.memory.session.linking.scope_registry import ScopeRegistry, scope_entry
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX, channel_of
from bot.memory.session.scope.scope_memory import Change, ScopeMemory
from bot.memory.session.state.fact_markdown import (
    FACTS_ROOM,
    markdown_lines,
    render_facts,
    select_facts,
)
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_SHARED_ROOM = 500
"""Tokens of the workspace's facts in a prompt."""

PRIVATE_PROBLEM = N_(
    "this problem is private, so nothing said in it becomes a part of memory, "
    "which other models see: a note on the problem (`/problem note`) keeps it here"
)
"""Reason why something is not learned."""

BELIEFS_HEADING = "Beliefs:\n"
"""What precedes the beliefs in the reference that the prompt shows."""

_NEVER = datetime.min.replace(tzinfo=UTC)

_MOVED = N_(
    "this chat was joined with another, or parted from it, just now: look again, and try again"
)

_LOOKED_AT = 500
"""Newest entries that are searched for the last sender."""


class LongTermMemory:
    """Read and change the long-term memory of one session.

    Args:
        tape: The session's tape.
        fold: The session's state.
        zone: The session's memory zone.
        scopes: The registry of scopes.
        hours: Lifetime of an unused working set, in hours.

    Attributes:
        bus: The memory bus of the session.
        room: Tokens of facts that the prompt may have; 0 for what it had before.
    """

    def __init__(
        self,
        tape: TapeService,
        fold: SessionFold,
        zone: MemoryZone,
        scopes: ScopeRegistry,
        *,
        hours: float = 2.0,
    ) -> None:
        self.tape = tape
        self.fold = fold
        self.zone = zone
        self.workspace = scopes.workspace()
        self.room = 0
        self._scopes = scopes
        self._reference: tuple[list[object], str] = ([], "")
        self._home = scopes.home(tape, fold.facts, fold.home_scope)
        self.bus = MemoryBus(self, scopes.home(tape, fold.facts, ""), working_set_hours=hours)

    def close(self) -> None:
        """Drop the memory bus, which refers to this object, once the session has ended; no use is possible after it."""
        del self.bus

    @property
    def home(self) -> ScopeMemory:
        """The scope that holds the session's facts."""
        wanted = self.fold.home_scope or self.tape.name
        if self._home.name != wanted:
            self._home = self._scopes.home(self.tape, self.fold.facts, self.fold.home_scope)
        return self._home

    @property
    def scopes(self) -> ScopeRegistry:
        """The registry of scopes."""
        return self._scopes

    @property
    def paused(self) -> bool:
        """Whether memory is paused, so that nothing is learned."""
        return self.home.fold.paused

    def facts(self) -> list[Fact]:
        """Return the active facts of the session's home scope."""
        return self.home.active()

    def check_not_private(self) -> None:
        """Check that the active problem is not private, before something is learned in it.

        Raises:
            MemoryRefused: It is.
        """
        if self.fold.is_private:
            raise MemoryRefused(_(PRIVATE_PROBLEM))

    async def open(self) -> None:
        """Read the scopes, and import a zone's memory that has no facts yet.

        That is memory from before facts were recorded, or what a fork's parent had learned before
        the copied part of its tape.
        """
        await self.workspace.open()
        await self.update_identities()
        await self.home.open()
        snapshot, span = self.zone.read(), self.fold.zone.span
        # A copy of a tape's end may lack facts that its zone shows.
        held = self.fold.facts
        lacks = not snapshot.facts or any(number not in held.facts for number, _ in snapshot.facts)
        torn = self.home.name == self.tape.name and held.is_partial and lacks
        settled = (
            self.fold.home_scope == self.tape.name or held.last_change or self.home.fold.last_change
        )
        if snapshot.long_term and span is not None and (torn or not settled):
            seal = (await self.tape.read_entries(span[0], span[0]))[0]
            cited = cite(self.tape.name, seal, "")
            evidence = replace(cited, origin="import", who="memory")
            imported = tuple(
                Proposal("add", line, subject=heading, evidence=(evidence,))
                for heading, line in lines_with_headings(snapshot.long_term)
            )
            key = f"forked:{self.tape.name}" if torn else f"import:{self.tape.name}:{span[0]}"
            await self.home.apply(ProposalBatch(key, "import", imported))
        await self._move_facts_to_person()
        await self.bus.problems.adopt_parent_problem()
        await self.refresh()

    async def _move_facts_to_person(self) -> None:
        """Move facts from the session's tape to the person's scope, once that is known.

        They end on the session's tape, so that they are not moved again.
        """
        if self.home.name == self.tape.name:
            return
        here = self._scopes.home(self.tape, self.fold.facts, "")
        key = f"carried:{self.tape.name}:{self.fold.facts.last_change}"
        if ends := _ends(here.fold):
            brought = tuple(joining_facts(here.fold, self.home.fold))
            await self.home.apply(ProposalBatch(key, "import", brought))
            await here.apply(ProposalBatch(f"{key}:ended", "person", ends))

    async def apply(self, batch: ProposalBatch) -> BatchOutcome:
        """Change the facts; the caller must then update the zone, with ``with_current_facts``.

        Raises:
            MemoryRefused: The gate refused the whole batch, it is about a scope that was left, or
                somebody wants to learn from a private problem.
            TapeWriteError: The storage failed; nothing was changed.
        """
        if batch.author in ("person", "assistant") and any(
            proposal.text for proposal in batch.proposals
        ):
            self.check_not_private()
        home = self.home
        if home.kind == "person":
            await self.update_identities()
        if self.home is not home:
            # The batch's fact numbers belong to the old scope.
            raise MemoryRefused(_(_MOVED))
        outcome = await home.apply(batch)
        for decision in () if outcome.repeated else outcome.with_verdict("pending"):
            contested = decision.signals.get("conflict_level") in ("medium", "high")
            # Quotations and text that gives orders stay out of the prompt until a person decides.
            own = decision.fact is not None and decision.fact.is_own_words
            if (
                decision.fact is not None
                and contested
                and own
                and not decision.proposal.review_reason
            ):
                hours = timedelta(hours=self.home.gate.thresholds.pending_hours)
                until = self.home.clock.now() + hours
                held = expiring_assumption(
                    decision.fact.text, decision.fact.confidence, until, fact=decision.fact.id
                )
                await self.bus.working_sets.add(self.fold.problem, "assumptions", held)
        return outcome

    def with_current_facts(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """Return a snapshot with the current facts (a ``ZoneEdit``); itself if nothing changed."""
        zone = self.zone
        facts, room = self.facts(), self.room or snapshot.room or FACTS_ROOM
        told = newer_first(select_facts(facts, room, self.home.compartments.uses))
        text = markdown_lines(told, zone.timezone)
        # A quotation tells its day itself.
        numbers = tuple(
            (fact.id, "" if fact.quoted else format_timestamp_day(fact.valid_from, zone.timezone))
            for fact in told
        )
        left = len(facts) - len(told)
        changed = (text, numbers, left) != (snapshot.long_term, snapshot.facts, snapshot.left)
        if changed and (self.fold.home_scope or self.home.fold.last_change):
            snapshot = snapshot.with_long_term(text, numbers, left=left, room=room)
        shared = render_facts(self.workspace.active(), _SHARED_ROOM)
        if shared != snapshot.shared:
            snapshot = snapshot.with_shared(shared)
        reference = self.render_reference()
        return snapshot if reference == snapshot.reference else snapshot.with_reference(reference)

    def render_reference(self) -> str:
        """Render the shared reference and beliefs that the session's prompt shows."""
        scopes = (self.home.compartments, self.workspace.compartments)
        held: list[object] = [tuple(compartments.references.values()) for compartments in scopes]
        held += [tuple(scopes[0].patterns.values()), scopes[0].decayed_at]
        if held != self._reference[0]:
            # Uses the confidence at the last decay, so that the prompt does not change by itself.
            beliefs = render_prompt_beliefs(self.home, scopes[0].decayed_at or _NEVER)
            values = render_references(readable_references(*scopes), timezone=self.zone.timezone)
            texts = (values, beliefs and f"{BELIEFS_HEADING}{beliefs}")
            self._reference = (held, "\n".join(filter(None, texts)))
        return self._reference[1]

    async def refresh(self) -> None:
        """Update the zone if the facts changed."""
        if self.with_current_facts(self.zone.read()) is not self.zone.read():
            await self.zone.edit(self.with_current_facts)

    async def note_use(self, numbers: Iterable[int]) -> None:
        """Note that facts were looked up, so that those without room in the prompt have some from the next change on."""
        shown = {number for number, _ in self.zone.read().facts}
        found = [n for n in numbers if n not in shown and self.home.fold.get(n) is not None]
        if not found or self.paused:
            return
        home, stamp = self.home, format_time(self.home.clock.now())
        uses = {str(number): stamp for number in found}
        await home.change(lambda _: Change(None, {"uses": uses}))

    async def write(self, batch: ProposalBatch) -> BatchOutcome:
        """Change the facts, then the zone."""
        outcome = await self.apply(batch)
        await self.refresh()
        return outcome

    def clear_batch(self, key: str, asker: str = "") -> ProposalBatch:
        """Return a batch that ends all facts of the session's scope."""
        return ProposalBatch(key, "person", _ends(self.home.fold), asker, clears_all=True)

    async def update_identities(self, sender: str = "") -> None:
        """Read new links between identities, finish moves, and update the home scope of who is about to speak."""
        await self._scopes.identity_linker.open()
        await self._scopes.identity_linker.finish_moves()
        await self.update_home(sender)

    async def read_new_facts(self) -> None:
        """Read what other sessions and processes added to the scopes that this session reads."""
        await self.workspace.open()
        await self.home.open()

    async def update_home(self, sender: str = "") -> None:
        """Switch to the scope that now holds the memory of this private chat's person.

        What parted from that scope leaves the prompt. On return, the home scope matches all links
        known so far.
        """
        while self.fold.home_scope:
            home = await _linked_home(self.tape, self.fold.home_scope, self._scopes, sender)
            wanted = home, self._scopes.parting(home)
            if wanted == (self.fold.home_scope, self.fold.home_parting):
                return
            await self._move_home(*wanted)

    async def _move_home(self, home: str, parting: int) -> None:
        # One append, so that after a crash no line of one scope appears to belong to the other.
        entry = scope_entry(home, parting)
        await self.zone.edit(
            lambda now: replace(
                now, version=now.version + 1, long_term="", facts=(), left=0, reference=""
            ),
            lambda _, zone, __: [entry, *zone],
        )
        await self.home.open()
        await self.refresh()

    async def set_home(self, entry: TapeEntry) -> None:
        """Append the event that names the session's home scope, and open that scope."""
        await self.tape.append(entry)
        await self.open()


def _ends(fold: FactFold) -> tuple[Proposal, ...]:
    """Return the proposals that end all facts of a scope."""
    held = [fact for fact in fold.facts.values() if fact.gloss]
    ends = tuple(Proposal("retire", fact=fact.id) for fact in held if fact.status == "active")
    drops = tuple(Proposal("drop", fact=fact.id) for fact in held if fact.status == "pending")
    return (*ends, *drops)


async def resolve_home(tape: TapeService, home: str, scopes: ScopeRegistry) -> str:
    """Return the scope that a session's facts belong to now, given the one that its tape names, if any.

    Identities may have linked or unlinked since the session was last open.
    """
    await scopes.identity_linker.open()
    return await _linked_home(tape, home or tape.name, scopes)


async def _linked_home(tape: TapeService, home: str, scopes: ScopeRegistry, who: str = "") -> str:
    """Return the scope that a session's facts belong to by the links known so far."""
    people, identity = scopes.identity_linker.people, home.removeprefix(PERSON_SCOPE_PREFIX)
    if not home.startswith(PERSON_SCOPE_PREFIX) or not people.was_linked(identity):
        return home
    # The last speaker identifies the chat's person, rather than someone who just appeared.
    speaker = await last_sender_id(tape) or who
    return scopes.person_tape(channel_of(tape.name), speaker) if speaker else home


async def named_home(store: TapeStore, tape: str) -> str:
    """Return the scope that a session's tape names for its facts; empty if it names none."""
    try:
        return (await load_fold(TapeService(store, tape))).home_scope
    except TapeNotFound:
        return ""


def lines_with_headings(text: str) -> list[tuple[str, str]]:
    """Return the lines of a Markdown text, each with its heading."""
    heading = ""
    found = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            heading = line.strip("# \t")
        found += [(heading, memory_line) for memory_line in memory_lines(line)]
    return found


async def last_sender_id(tape: TapeService) -> str:
    """Return the user id of the last sender in a conversation; empty if there is none nearby."""
    looked = 0
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            looked += 1
            # A command from another conversation does not identify this chat's person.
            found = "" if is_remote_command(entry) else sender_id(entry)
            if found or looked == _LOOKED_AT:
                return found
    return ""
