"""A session's long-term memory: the facts of its home scope, rendered into its zone.

A change is made in two steps that a kill may come between: the facts first, on the scope's tape, and then
the zone, on the session's. Whoever changes something gives it a key, so that doing it again after the kill
changes nothing twice; the zone is brought up to date with the facts whenever it is written.
"""

from __future__ import annotations

from dataclasses import replace

from bot.memory.facts.citing import cite
from bot.memory.facts.fact import Fact
from bot.memory.facts.proposals import Batch, Outcome, Proposal
from bot.memory.facts.rendering import render
from bot.memory.fold import SessionFold
from bot.memory.guards import lines_of
from bot.memory.scope import ScopeMemory
from bot.memory.scopes import Scopes
from bot.memory.snapshot import MemorySnapshot
from bot.memory.zone import Compose, MemoryZone
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_SHARED_BYTES = 1_500
"""Of the workspace's facts in each prompt."""


class LongTermMemory:
    """What one session believes, and the only way to change it.

    Args:
        tape: The session's.
        fold: Its state.
        zone: Its zone.
        scopes: All there are.
    """

    def __init__(
        self, tape: TapeService, fold: SessionFold, zone: MemoryZone, scopes: Scopes
    ) -> None:
        self.tape = tape
        self.fold = fold
        self.zone = zone
        self.workspace = scopes.workspace()
        self._scopes = scopes
        self._home = scopes.home(tape, fold.facts, fold.home)

    @property
    def home(self) -> ScopeMemory:
        """The scope that facts learned here belong to."""
        wanted = self.fold.home or self.tape.name
        if self._home.name != wanted:
            self._home = self._scopes.home(self.tape, self.fold.facts, self.fold.home)
        return self._home

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
            Proposal("add", fact.text, subject=fact.subject, evidence=fact.evidence) for fact in own
        )
        await self.home.apply(Batch(key, "import", brought))
        ends = tuple(Proposal("retire", fact=fact.id) for fact in own)
        await here.apply(Batch(f"{key}:ended", "person", ends))

    async def apply(self, batch: Batch) -> Outcome:
        """Change the facts; the zone is for the caller to bring up to date, by ``current``.

        Raises:
            MemoryRefused: The gate refused the batch as a whole.
            TapeWriteError: The storage refused; nothing was changed.
        """
        return await self.home.apply(batch)

    def current(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """Return a snapshot with the facts as they are now, itself where it has them: an ``Edit``."""
        facts = self.facts()
        text = render(facts)
        if text != snapshot.long_term and (self.fold.home or self.home.fold.last):
            snapshot = snapshot.with_long_term(text)
        shared = render(self.workspace.active(), _SHARED_BYTES)
        return snapshot if shared == snapshot.shared else snapshot.with_shared(shared)

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

    async def settle(self, entry: TapeEntry) -> None:
        """Put the event on the tape that says where the session's facts belong, and open that."""
        await self.tape.append(entry)
        await self.open()


def under_headings(text: str) -> list[tuple[str, str]]:
    """Return the lines of Markdown, each with the heading that it stands under."""
    heading = ""
    found = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            heading = line.strip("# \t")
        found += [(heading, one) for one in lines_of(line)]
    return found
