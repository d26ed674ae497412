"""A session's long-term memory: the facts of its home scope, rendered into its zone.

A change is made in two steps that a kill may come between: the facts first, on the scope's tape, and then
the zone, on the session's. Whoever changes something gives it a key, so that doing it again after the kill
changes nothing twice; the zone is brought up to date with the facts whenever it is written.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.core.errors import MemoryRefused
from bot.memory.bus.bus import MemoryBus
from bot.memory.bus.patterns import ranks_of
from bot.memory.bus.rendering import references_read, rendered
from bot.memory.bus.semantic import patterns_lines
from bot.memory.bus.working import held_until
from bot.memory.facts.citing import cite
from bot.memory.facts.fact import Fact
from bot.memory.facts.proposals import Batch, Outcome, Proposal
from bot.memory.facts.rendering import chosen, lines, render
from bot.memory.fold import SessionFold
from bot.memory.gate.likeness import folded
from bot.memory.guards import lines_of
from bot.memory.people import channel_of
from bot.memory.scope import ScopeMemory
from bot.memory.scopes import PERSON, Scopes, scope_entry
from bot.memory.snapshot import MemorySnapshot
from bot.memory.spoken import is_from_elsewhere
from bot.memory.transcript import sender_id, shown_day
from bot.memory.transfers import left_with, was_left
from bot.memory.zone import Compose, MemoryZone
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_SHARED_BYTES = 1_500
"""Of the workspace's facts in each prompt."""

_NEVER = datetime.min.replace(tzinfo=UTC)

_MOVED = "this chat was joined with another, or parted from it, just now: look again, and try again"

_LOOKED_AT = 500
"""Newest entries that may say whose chat it is."""


class LongTermMemory:
    """What one session believes, and the only way to change it.

    Args:
        tape: The session's.
        fold: Its state.
        zone: Its zone.
        scopes: All there are.
        hours: How long a working set lives unused.

    Attributes:
        bus: The memory bus of the session.
    """

    def __init__(
        self,
        tape: TapeService,
        fold: SessionFold,
        zone: MemoryZone,
        scopes: Scopes,
        *,
        hours: float = 2.0,
    ) -> None:
        self.tape = tape
        self.fold = fold
        self.zone = zone
        self.workspace = scopes.workspace()
        self._scopes = scopes
        self._reference: tuple[list[object], str] = ([], "")
        self._home = scopes.home(tape, fold.facts, fold.home)
        self.bus = MemoryBus(self, scopes.home(tape, fold.facts, ""), hours=hours)

    @property
    def home(self) -> ScopeMemory:
        """The scope that facts learned here belong to."""
        wanted = self.fold.home or self.tape.name
        if self._home.name != wanted:
            self._home = self._scopes.home(self.tape, self.fold.facts, self.fold.home)
        return self._home

    @property
    def scopes(self) -> Scopes:
        """All there are."""
        return self._scopes

    @property
    def paused(self) -> bool:
        """Nothing is learned until it is resumed."""
        return self.home.fold.paused

    def facts(self) -> list[Fact]:
        """Return what is believed of the session's own scope."""
        return self.home.active()

    async def open(self) -> None:
        """Read the scopes; take over memory that has no facts here.

        That is what was written before there were facts, and what a fork's parent learned before the
        fork begins.
        """
        await self.workspace.open()
        await self.settle_person()
        await self.home.open()
        snapshot, span = self.zone.read(), self.fold.zone.span
        torn = self.home.name == self.tape.name and self.fold.facts.torn
        settled = self.fold.home == self.tape.name or self.fold.facts.last or self.home.fold.last
        if snapshot.long_term and span is not None and (torn or not settled):
            seal = (await self.tape.read_entries(span[0], span[0]))[0]
            cited = cite(self.tape.name, seal, "")
            evidence = replace(cited, origin="import", who="memory")
            imported = tuple(
                Proposal("add", line, subject=heading, evidence=(evidence,))
                for heading, line in under_headings(snapshot.long_term)
            )
            key = f"forked:{self.tape.name}" if torn else f"import:{self.tape.name}:{span[0]}"
            await self.home.apply(Batch(key, "import", imported))
        await self._carry()
        await self.bus.problems.take_over()
        await self.refresh()

    async def _carry(self) -> None:
        """Give a person what was on the session's tape before it was known to be theirs.

        Then it ends here: whatever becomes of it there, it is not given a second time.
        """
        if self.home.name == self.tape.name:
            return
        here = self._scopes.home(self.tape, self.fold.facts, "")
        key = f"carried:{self.tape.name}:{self.fold.facts.last}"
        own = here.active()
        if not own:
            return
        brought = tuple(
            Proposal(
                "add",
                fact.text,
                subject=fact.subject,
                slot=fact.slot,
                evidence=fact.evidence,
                unverified=fact.unverified,
            )
            for fact in own
        )
        await self.home.apply(Batch(key, "import", brought))
        ends = tuple(Proposal("retire", fact=fact.id) for fact in own)
        await here.apply(Batch(f"{key}:ended", "person", ends))

    async def apply(self, batch: Batch) -> Outcome:
        """Change the facts; the zone is for the caller to bring up to date, by ``current``.

        Raises:
            MemoryRefused: The gate refused the batch as a whole, or it is of a scope that was left.
            TapeWriteError: The storage refused; nothing was changed.
        """
        home = self.home
        if home.kind == "person":
            await self.settle_person()
        if self.home is not home:
            # The numbers in it are of other facts.
            raise MemoryRefused(_MOVED)
        outcome = await home.apply(batch)
        for one in () if outcome.repeated else outcome.of("pending"):
            contested = one.signals.get("conflict_level") in ("medium", "high")
            # What is quoted, or gives orders, is shown to a person alone until they decide.
            own = one.fact is not None and one.fact.origin in ("person", "member")
            if one.fact is not None and contested and own and not one.proposal.suspect:
                hours = timedelta(hours=self.home.gate.thresholds.pending_hours)
                until = self.home.clock.now() + hours
                held = held_until(one.fact.text, one.fact.confidence, until, fact=one.fact.id)
                await self.bus.working_sets.add(self.fold.problem, "assumptions", held)
        return outcome

    def current(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """Return a snapshot with the facts as they are now, itself where it has them: an ``Edit``."""
        told = chosen(self.facts(), ranks=ranks_of(self.home.fold))
        text = lines(told)
        numbers = tuple((one.id, shown_day(one.valid_from, self.zone.timezone)) for one in told)
        changed = (text, numbers) != (snapshot.long_term, snapshot.facts)
        if changed and (self.fold.home or self.home.fold.last):
            snapshot = snapshot.with_long_term(text, numbers)
        shared = render(self.workspace.active(), _SHARED_BYTES)
        if shared != snapshot.shared:
            snapshot = snapshot.with_shared(shared)
        reference = self.reference()
        return snapshot if reference == snapshot.reference else snapshot.with_reference(reference)

    def reference(self) -> str:
        """Return the shared reference and the beliefs that the session reads, as its prompt shows them."""
        scopes = (self.home.compartments, self.workspace.compartments)
        held: list[object] = [tuple(one.references.values()) for one in scopes]
        held += [tuple(scopes[0].patterns.values()), scopes[0].decayed]
        if held != self._reference[0]:
            # As sure as at the last decay: a text that changed by itself would change each prompt.
            beliefs = patterns_lines(self.home, scopes[0].decayed or _NEVER)
            values = rendered(references_read(*scopes), timezone=self.zone.timezone)
            texts = (values, beliefs and f"Beliefs:\n{beliefs}")
            self._reference = (held, "\n".join(filter(None, texts)))
        return self._reference[1]

    async def refresh(self) -> None:
        """Bring the zone up to date with the facts."""
        if self.current(self.zone.read()) is not self.zone.read():
            await self.zone.edit(self.current)

    async def write(self, batch: Batch, compose: Compose | None = None) -> Outcome:
        """Change the facts, and then the zone with other entries around it."""
        outcome = await self.apply(batch)
        await self.zone.edit(self.current, compose)
        return outcome

    def clearing(self, key: str, asker: str = "") -> Batch:
        """Return a batch that ends all facts of the session's scope."""
        ends = tuple(Proposal("retire", fact=fact.id) for fact in self.home.active())
        drops = tuple(Proposal("drop", fact=fact.id) for fact in self.home.fold.pending())
        return Batch(key, "person", (*ends, *drops), asker, clears=True)

    async def settle_person(self, sender: str = "") -> None:
        """Take in who joined their identities, or left, also in other processes, and follow them.

        Args:
            sender: The platform's id of who is about to say something.
        """
        await self._scopes.linking.open()
        await self._scopes.linking.finish()
        await self.follow(sender)

    async def look(self) -> None:
        """Take in what other sessions taught the scopes that are read here, also in other processes."""
        await self.workspace.open()
        await self.home.open()

    async def follow(self, sender: str = "") -> None:
        """Go to where the memory of whose private chat this is has gone, if it has.

        When this returns, the home is what it is to be by all that is known of who is who.
        """
        people = self._scopes.linking.people
        known = -1
        while known != people.version:
            # Others may join or part meanwhile.
            known = people.version
            await self._follow(sender)

    async def _follow(self, sender: str) -> None:
        people, home = self._scopes.linking.people, self.fold.home
        if not home.startswith(PERSON) or not people.concerns(home.removeprefix(PERSON)):
            return
        # Whose chat it is says who spoke in it before, and not who may just have turned up.
        whose = await newest_speaker(self.tape) or sender
        wanted = self._scopes.person_of(channel_of(self.tape.name), whose)
        if not whose:
            return
        if wanted == home:
            await self._let_go()
            return
        entry = scope_entry(wanted)
        # In one append: after a kill no line of one scope may look as if it were of the other.
        await self.zone.edit(
            lambda now: replace(now, version=now.version + 1, long_term="", facts=(), reference=""),
            lambda _, zone, __: [] if self.fold.home == wanted else [entry, *zone],
        )
        await self.home.open()
        await self.refresh()

    async def _let_go(self) -> None:
        """Take out of the prompt what ended here since those who had said it left."""
        await self.home.open()
        gone = left_with(self.home.fold)
        frozen = self.fold.frozen
        told = any(folded(line) in gone for line in lines_of(frozen.long_term))
        if was_left(self.home.fold) and frozen.reference:
            told = told or not {*lines_of(frozen.reference)} <= {*lines_of(self.reference())}
        if told:
            await self.tape.append(scope_entry(self.home.name))
            await self.refresh()

    async def settle(self, entry: TapeEntry) -> None:
        """Put the event on the tape that says where the session's facts belong, and open that."""
        await self.tape.append(entry)
        await self.open()


async def home_of(tape: TapeService, home: str, scopes: Scopes) -> str:
    """Return the scope that a session's facts belong to by now, wherever the session is open.

    A person may have joined another identity, or left it, since the session was last open.

    Args:
        tape: The session's.
        home: The scope that its tape names; empty for its own.
        scopes: All there are.
    """
    home = home or tape.name
    await scopes.linking.open()
    if not home.startswith(PERSON) or not scopes.linking.people.concerns(home.removeprefix(PERSON)):
        return home
    speaker = await newest_speaker(tape)
    return scopes.person_of(channel_of(tape.name), speaker) if speaker else home


def under_headings(text: str) -> list[tuple[str, str]]:
    """Return the lines of Markdown, each with the heading that it stands under."""
    heading = ""
    found = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            heading = line.strip("# \t")
        found += [(heading, one) for one in lines_of(line)]
    return found


async def newest_speaker(tape: TapeService) -> str:
    """Return the platform's id of who spoke last in a conversation; empty where nobody is near."""
    looked = 0
    async with aclosing(tape.read_back()) as entries:
        async for entry in entries:
            looked += 1
            # A command from elsewhere does not say whose chat it is.
            found = "" if is_from_elsewhere(entry) else sender_id(entry)
            if found or looked == _LOOKED_AT:
                return found
    return ""
