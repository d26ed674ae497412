"""A session that this process holds: its tape, what is folded from it, and its background work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields

from anyio.abc import TaskGroup

from bot.agent.request_builder import RequestBuilder
from bot.agent.schedules.due_tape import parse_occurrence_id
from bot.agent.views.automatic_recall import AutomaticRecall
from bot.agent.views.exact import AnchorReader
from bot.agent.views.summaries import SummaryReader
from bot.bus import PERSON, Address, Inbound
from bot.core.errors import TapeError
from bot.memory.records.conversation_entries import AUTOMATION
from bot.memory.records.episodes import stamp_problem
from bot.memory.records.transcript import sender_id
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.identities import identity_at
from bot.memory.session.state.fold_loader import open_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.sessions.background_run import (
    BELIEF_CHECK,
    CONSOLIDATION,
    IMPORT_READING,
    VERIFICATION,
    BackgroundRun,
    Post,
    WorkingOn,
)
from bot.runtime.sessions.consolidator import Consolidator
from bot.runtime.sessions.fact_verifier import FactVerifier
from bot.runtime.sessions.import_reader import ImportReader
from bot.runtime.sessions.services import SessionServices
from bot.tape.folding import FoldedTape
from bot.tape.service import TapeService


@dataclass(slots=True)
class Session:
    """One open session; implements ``bot.memory.session.linking.scope_registry.ActiveSession``.

    Attributes:
        services: What sessions share.
        address: The chat.
        tape: The session's tape.
        folded: The session's state, which is kept now and then.
        zone: The memory zone.
        memory: The long-term memory.
        requests: Builds model requests.
        consolidator: Consolidates in the background.
        verifier: Verifies facts in the background.
        import_reader: Reads the person's imported conversations in the background.
        is_busy: Whether a job runs that has read the tape.
    """

    services: SessionServices
    address: Address
    tape: TapeService
    folded: FoldedTape[SessionFold]
    zone: MemoryZone
    memory: LongTermMemory
    requests: RequestBuilder
    consolidator: Consolidator
    verifier: FactVerifier
    import_reader: ImportReader
    is_busy: bool = False

    @property
    def key(self) -> str:
        """The session's key, which is the name of its tape."""
        return self.tape.name

    @property
    def fold(self) -> SessionFold:
        """The session's state."""
        return self.folded.fold

    async def keep_state(self, least: int = 128) -> None:
        """Keep the state if so many entries came since it was last kept."""
        # A state that cannot be kept costs time when the session is opened again.
        with suppress(TapeError):
            await self.folded.keep(self.fold.version, least=least)

    @property
    def timezone_name(self) -> str:
        """Name of the conversation's time zone."""
        return self.fold.schedules.zone_name or self.services.agent.timezone_name

    @property
    def works_in_background(self) -> bool:
        """True while a consolidation, a verification or the reading of an import runs."""
        return self.consolidator.running or self.verifier.running or self.import_reader.running

    @property
    def waits_in_background(self) -> bool:
        """True while one of these waits to be tried again, for which the session must be loaded."""
        return self.consolidator.waiting or self.verifier.waiting or self.import_reader.waiting

    async def language_of(self, inbound: Inbound) -> str:
        """Return the language of a message's sender."""
        languages = self.services.languages
        if (schedule := parse_occurrence_id(inbound.id)) is not None and inbound.cause != PERSON:
            known = self.fold.schedules.live.get(schedule[0])
            author = known.author.id if known is not None else ""
            return await languages.of(self._identity(author)) if author else languages.default
        channel = (inbound.answer_to or inbound.address).channel
        return await languages.of_sender(channel, inbound.sender)

    async def last_language(self) -> str:
        """Return the language of who wrote last, for what is told unasked or to all."""
        for entry in reversed(self.fold.window.entries):
            if entry.payload.get("role") != AUTOMATION and (sender := sender_id(entry)):
                return await self.services.languages.of(self._identity(sender))
        # On some platforms a private chat has its person's id.
        return await self.services.languages.of(self._identity(self.address.chat_id))

    def _identity(self, sender: str) -> str:
        # An id of another surface has its channel already.
        return sender if ":" in sender else identity_at(self.key, sender)

    def use_model(self, chosen: str | None = None, *, problem: str | None = None) -> None:
        """Have the next turn run with the model for this chat, within the limits of its window.

        Args:
            chosen: Name of a preset, or empty for the default; None takes the chat's choice.
            problem: Id of the problem that it works on; None for the active one.
        """
        fold = self.fold
        preset = fold.chosen_preset if chosen is None else chosen
        private = fold.compartments.is_private(fold.problem if problem is None else problem)
        agent = self.services.agent.for_chat(preset, private=private)
        self.requests.agent = agent
        self.fold.window.max_tokens = self.services.view_tokens_for(agent)
        self.memory.room = agent.facts_room
        self.consolidator.policy = self.services.policy_for(agent)

    def start_background_work(self, tasks: TaskGroup) -> None:
        """Start a consolidation, a verification and the reading of an import, if they are due."""
        self.consolidator.start_if_due(tasks)
        self.verifier.start_if_due(tasks)
        self.import_reader.start_if_due(tasks)

    def cancel_background_work(self) -> None:
        """Cancel background work, for example on words that are about to be erased."""
        self.consolidator.cancel()
        self.verifier.cancel()
        self.import_reader.cancel()

    async def update_home(self) -> None:
        """Switch to the tape that now holds the person's memory."""
        await self.memory.update_home()

    async def reload(self) -> None:
        """Fold the tape anew into the same state object; writes are blocked meanwhile."""
        async with self.tape.block_writes():
            folded, fold = await open_fold(self.tape), self.fold
            window, fresh = fold.window, folded.fold.window
            fresh.max_messages, fresh.max_tokens = window.max_messages, window.max_tokens
            replace_state(fold, folded.fold)
            # Other objects hold the state.
            folded.fold, self.folded = fold, folded
            self.tape.fence(fold.version)
        requests = self.requests
        requests.rendered.clear()
        requests.prompted = None
        requests.recalled = AutomaticRecall()
        requests.last_model_call = None
        requests.anchors = AnchorReader(self.tape, self.fold)
        requests.summaries = SummaryReader(self.tape, self.fold)


async def open_session(
    services: SessionServices, key: str, post: Post, working_on: WorkingOn
) -> Session:
    """Open a session from its tape, which is created if there is none.

    Args:
        services: What sessions share.
        key: The session's key.
        post: Has the worker write the outcome of background work.
        working_on: Records background work, for crash attribution.
    """
    tape = TapeService(services.store, key)
    folded = await _load(tape, services)
    fold = folded.fold
    zone = MemoryZone(
        tape,
        retention_days=services.retention_days,
        fold=fold.zone,
        timezone=services.agent.timezone,
        clock=services.agent.clock,
    )
    await zone.load_or_create()
    memory = LongTermMemory(tape, fold, zone, services.scopes, hours=services.working_set_hours)
    agent = services.agent.for_chat(fold.chosen_preset, private=fold.is_private)
    memory.room = agent.facts_room
    await memory.open()

    def background_run(kind: str) -> BackgroundRun:
        return BackgroundRun(kind, services.agent.clock, post, working_on)

    requests = RequestBuilder(services.agent, tape, fold, zone, memory)
    session = Session(
        services,
        Address.parse(key),
        tape,
        folded,
        zone,
        memory,
        requests,
        Consolidator(
            memory,
            services.agent,
            services.policy,
            requests.cached_prompt,
            portion_tokens=services.portion_tokens,
            run=background_run(CONSOLIDATION),
            belief_check=background_run(BELIEF_CHECK),
        ),
        FactVerifier(memory, services.agent, background_run(VERIFICATION)),
        ImportReader(
            memory,
            services.agent,
            portion_tokens=services.portion_tokens,
            run=background_run(IMPORT_READING),
        ),
    )
    session.use_model()
    return session


async def _load(tape: TapeService, services: SessionServices) -> FoldedTape[SessionFold]:
    """Return the folded state of a tape; it follows what is appended."""
    await tape.ensure_bootstrap_anchor()
    # The fold may miss unreadable entries at the end, or hold ones written meanwhile.
    version = await tape.version()
    folded = await open_fold(tape)
    fold = folded.fold
    fold.window.max_messages = services.view_messages
    tape.observe(fold.apply)
    tape.fence(max(version, fold.version))
    tape.stamp = lambda entry: stamp_problem(entry, fold.compartments)
    return folded


def replace_state(fold: SessionFold, fresh: SessionFold) -> None:
    """Copy a fold's state into another in place, because other objects hold its parts."""
    shared = ("window", "turns", "zone", "facts")
    for part in fields(SessionFold):
        if part.name not in shared:
            setattr(fold, part.name, getattr(fresh, part.name))
            continue
        old, new = getattr(fold, part.name), getattr(fresh, part.name)
        for field in fields(old):
            setattr(old, field.name, getattr(new, field.name))
