"""Read a person's imported conversations for facts, in the background of one of their chats.

It is started by ``/memory import start`` and reads one portion after the other, oldest conversation
first, under the person's budget. What it finds waits in ``/memory pending``. It pauses while much
waits there. After a restart it goes on with the person's next message in that chat.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial

from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.consolidation.imported_tapes import (
    MOST_PENDING,
    ImportedTape,
    people_of,
    propose_findings,
    read_imported_tape,
)
from bot.agent.consolidation.runner import ConsolidationResult, consolidate
from bot.core.clock import parse_time
from bot.core.errors import BudgetReached, ConsolidationFailed, ModelError
from bot.core.i18n import _, ngettext
from bot.llm.call_slots import Caller, calling_for
from bot.llm.spender import Spender, spends
from bot.memory.records.event_names import IMPORT_READING
from bot.memory.records.imports import assistant_of
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.sessions.background_run import (
    LONGEST_RETRY,
    BackgroundRun,
    Outcome,
    retry_seconds,
)
from bot.runtime.sessions.spenders import background_spender
from bot.tape.entries import event
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)


class ImportReader:
    """Reads the imported conversations of a session's person.

    Args:
        memory: The session's long-term memory, whose home scope gets the proposals.
        agent: Gives the models that consolidate and judge, the clock and the time zone.
        portion_tokens: Tokens of conversation in one request.
        run: Runs the portions.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        agent: Agent,
        *,
        portion_tokens: int,
        run: BackgroundRun,
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._portion_tokens = portion_tokens
        self._run = run
        self._known: dict[str, ImportedTape | None] = {}
        self._people: tuple[str, ...] = ()
        self._failures = 0
        self._retry_at = 0.0
        self._failed_on = ""

    @property
    def running(self) -> bool:
        """True while a portion is read."""
        return self._run.running

    @property
    def waiting(self) -> bool:
        """True while a portion waits to be tried again."""
        return self._run.waiting

    @property
    def _is_on(self) -> bool:
        memory = self._memory
        return memory.fold.reads_imports and memory.home.kind == "person" and not memory.paused

    def waits_for(self) -> str:
        """Return what reading waits for, in words; empty if for nothing."""
        if self._memory.paused:
            return _("memory is paused (`/memory resume`)")
        if len(self._memory.home.fold.pending()) >= MOST_PENDING:
            return ngettext(
                "{n} fact waits for you: accept or drop it",
                "{n} facts wait for you: accept or drop some",
                MOST_PENDING,
            )
        if (reached := self._budget_pause()) is not None:
            return str(reached)
        return (
            _("it failed, and will be tried again: {failed_on}", failed_on=self._failed_on)
            if self._failures
            else ""
        )

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Read the next portion, unless reading is off, runs, or waits for something."""
        if not self._is_on or not self._run.may_start:
            return
        if len(self._memory.home.fold.pending()) >= MOST_PENDING:
            return
        wait = self._retry_at - self._agent.clock.monotonic() if self._failures else 0.0
        if (reached := self._budget_pause()) is not None:
            wait = max(wait, min(reached.retry_after, LONGEST_RETRY))
        if wait > 0:
            self._run.wait(tasks, wait)
        else:
            self._run.start(tasks, self._read_next)

    def pause(self, why: str, failures: int) -> None:
        """Try again later; the pause doubles with each of so many failures in a row."""
        self._failures, self._failed_on = failures, why
        seconds = retry_seconds(failures)
        self._retry_at = self._agent.clock.monotonic() + seconds
        logger.warning("imported conversations were not read: %s; next try in %.0f s", why, seconds)

    def cancel(self) -> None:
        """Cancel the running portion; it is read again later."""
        self._run.cancel()

    def _spender(self) -> Spender:
        memory = self._memory
        return background_spender(memory.tape.name, memory.fold.window.conversation())

    def _budget_pause(self) -> BudgetReached | None:
        spending = self._agent.spending
        if spending is None:
            return None
        return spending.limit_reached(self._spender(), "consolidation")

    async def _read_next(self) -> Outcome:
        tape = await self._next_tape()
        if tape is None:
            return self._finish
        store = self._memory.tape.store
        erasures = await store.erasures(tape.name)
        try:
            with calling_for(Caller(self._memory.tape.name, background=True)):
                result = await self._consolidate(tape)
        except (ModelError, ConsolidationFailed) as error:
            return partial(self._fail, str(error))
        return partial(self._record, tape, result, erasures)

    async def tapes(self) -> list[ImportedTape]:
        """Return the person's imported conversations, oldest first; each is looked at once."""
        store, people = self._memory.tape.store, people_of(self._memory)
        if people != self._people:
            self._known, self._people = {}, people
        for name in await store.list_tapes():
            if assistant_of(name) and name not in self._known:
                self._known[name] = await read_imported_tape(store, name, people)
        found = [tape for tape in self._known.values() if tape is not None]
        return sorted(found, key=lambda one: (one.since, one.name))

    async def _next_tape(self) -> ImportedTape | None:
        """Return the oldest conversation that was not read to its end."""
        store = self._memory.tape.store
        if people_of(self._memory) != self._people or self._oldest_unread() is None:
            await self.tapes()
        while (known := self._oldest_unread()) is not None:
            # Another chat of the person may read, too.
            tape = await read_imported_tape(store, known.name, self._people)
            self._known[known.name] = tape
            if tape is not None and tape.unread is not None:
                return tape
        return None

    def _oldest_unread(self) -> ImportedTape | None:
        unread = (one for one in self._known.values() if one is not None and one.unread is not None)
        return min(unread, key=lambda one: (one.since, one.name), default=None)

    async def _consolidate(self, imported: ImportedTape) -> ConsolidationResult:
        assert imported.unread is not None
        agent = self._agent
        with spends(self._spender()):
            return await consolidate(
                agent.consolidation_model,
                await self._memory_of(imported.name),
                imported.unread,
                portion_tokens=self._portion_tokens,
                timezone=agent.timezone,
                imported=parse_time(imported.imported) or datetime.now(agent.timezone),
            )

    async def _memory_of(self, name: str) -> LongTermMemory:
        """Return the memory of an imported tape; its home is that of this session."""
        tape = TapeService(self._memory.tape.store, name)
        fold = await load_fold(tape)
        fold.home_scope = self._memory.home.name
        zone = MemoryZone(
            tape,
            retention_days=0,
            fold=fold.zone,
            timezone=self._agent.timezone,
            clock=self._agent.clock,
        )
        return LongTermMemory(tape, fold, zone, self._memory.scopes)

    async def _record(self, tape: ImportedTape, result: ConsolidationResult, erasures: int) -> None:
        memory = self._memory
        await memory.update_identities()
        store = memory.tape.store
        self._failures = 0
        if (
            not self._is_on
            or result.facts != memory.home.name
            or result.emptied != memory.home.fold.cleared_at
            or erasures != await store.erasures(tape.name)
        ):
            logger.info("what was read of %s is dropped: memory changed meanwhile", tape.name)
            return
        waiting = await propose_findings(store, tape.name, memory.home, result)
        self._known[tape.name] = await read_imported_tape(store, tape.name, self._people)
        logger.info("read %s to entry %d: %d proposals", tape.name, result.range.last, waiting)

    async def _fail(self, why: str) -> None:
        self.pause(why, self._failures + 1)

    async def _finish(self) -> None:
        if self._memory.fold.reads_imports:
            await self._memory.tape.append(event(IMPORT_READING, {"on": False}))
