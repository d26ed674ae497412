"""Run commands that need no turn of their own, and give them access to their session."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from bot.agent.agent import Agent
from bot.agent.commands.approvals import decider
from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandAuthor, CommandRegistry, CommandReply
from bot.agent.consolidation.imported_tapes import ImportedTape
from bot.agent.consolidation.judge_trial import failed_judge_text
from bot.agent.notebook import NotebookModel
from bot.agent.schedules.session_schedules import SessionSchedules
from bot.agent.spending.spending import Spending
from bot.bus import ReceivedMessage
from bot.core.errors import TapebotError
from bot.core.i18n import N_, _
from bot.core.reasons import reason_of, reason_text
from bot.llm.presets import ModelPresets, RefusingModel
from bot.llm.spender import Spender, spends
from bot.memory.records.pending_calls import PendingCall
from bot.memory.records.transcript import recorded_at, shown_entry_time
from bot.memory.session.archive_summary import ArchiveSummary
from bot.memory.session.file_folder import FileFolders
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.identities import identity_at
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.runtime.sessions.entries import command_author
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.writer import SessionWriter
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

if TYPE_CHECKING:
    from bot.memory.erasure.closure import Closure
    from bot.memory.erasure.erasure_messages import ErasureResult
    from bot.memory.erasure.erasure_query import ErasureQuery
    from bot.runtime.sessions.erasure import Eraser

_THEIR_OWN = N_(
    "`/{name}` concerns a personal account. Only the person of this chat can use it, in the chat "
    "itself."
)
_OF_ACCOUNTS = frozenset({"link", "login", "unlink"})


async def run_command(
    session: Session, writer: SessionWriter, delivery: ReceivedMessage, parsed: ParsedCommand
) -> None:
    """Record a command, run it, and reply; facts it saves cite the recorded command."""
    commands = session.services.commands
    command = commands.get(parsed.name)
    entry = await writer.record_command(delivery, parsed)
    # Before it runs, since an erasure takes its own question.
    answered = await writer.answered_questions(delivery, parsed)
    try:
        if command is None or command.run is None:
            reply = CommandReply(commands.unknown(parsed), replaces_message=False)
        else:
            context = SessionContext(session, command_author(delivery.inbound), entry)
            with spends(context.spender):
                reply = await command.run(parsed.arguments, context)
    except TapebotError as error:
        text = _("That did not work: {error}.", error=reason_of(error))
        reply = CommandReply(text, replaces_message=False)
    await writer.reply(delivery, parsed, reply, answered)


async def find_call_to_approve(
    session: Session, writer: SessionWriter, delivery: ReceivedMessage, parsed: ParsedCommand
) -> tuple[PendingCall, str] | CommandReply:
    """Return the call that ``/approve`` lets act and who approves it, or the reply if there is none."""
    entry = await writer.record_command(delivery, parsed)
    context = SessionContext(session, command_author(delivery.inbound), entry)
    try:
        found = await session.services.approvals.find(parsed.name, parsed.arguments, context)
    except TapebotError as error:
        text = _("That did not work: {error}.", error=reason_of(error))
        return CommandReply(text, replaces_message=False)
    return found if isinstance(found, CommandReply) else (found, decider(context))


def refusal(session: Session, delivery: ReceivedMessage, parsed: ParsedCommand) -> str | None:
    """Return why the sender may not give this command; None if they may."""
    command = session.services.commands.get(parsed.name)
    if command is None:
        return None
    if delivery.inbound.answer_to is not None and command.name in _OF_ACCOUNTS:
        return _(_THEIR_OWN, name=command.name)
    return command.refusal(parsed.arguments, command_author(delivery.inbound))


class SessionContext:
    """Gives a command, which is on the tape, access to its session."""

    def __init__(self, session: Session, author: CommandAuthor, entry: TapeEntry) -> None:
        self._session = session
        self._services = session.services
        self._agent = session.services.agent
        self.author = author
        self._entry = entry

    @property
    def spending(self) -> Spending | None:
        """Counts what models cost; None if nothing is counted."""
        return self._agent.spending

    @property
    def spender(self) -> Spender:
        """The command's author, as models are called for them."""
        author = self.author
        # An id of another surface has its channel already.
        elsewhere = ":" in author.id
        identity = author.id if elsewhere else identity_at(self.tape.name, author.id)
        return Spender(identity, self.tape.name, "", author.role == "owner", author.inbound)

    @property
    def files(self) -> FileFolders | None:
        """The folders of files; None if there are none."""
        return None if self._agent.files is None else self._agent.files.folders

    @property
    def command_entry(self) -> TapeEntry:
        """The command's entry on the tape."""
        return self._entry

    @property
    def memory(self) -> LongTermMemory:
        """The session's long-term memory."""
        return self._session.memory

    @property
    def tape(self) -> TapeService:
        """The session's tape."""
        return self._session.tape

    @property
    def fold(self) -> SessionFold:
        """The session's state."""
        return self._session.fold

    @property
    def zone(self) -> MemoryZone:
        """The session's memory zone."""
        return self._session.zone

    @property
    def schedules(self) -> SessionSchedules:
        """Sets and changes the session's schedules."""
        session, agent = self._session, self._agent
        return SessionSchedules(session.tape, session.fold, agent.clock.now, agent.timezone_name)

    @property
    def exports(self) -> Path:
        """The folder for exported files."""
        return self._services.exports

    @property
    def commands(self) -> CommandRegistry:
        """All commands."""
        return self._services.commands

    async def export_memory(self) -> ArchiveSummary:
        """Write the session's memory into one file in the folder for exports."""
        moment = recorded_at(self.command_entry) or self._agent.clock.now()
        return await self._services.archive(self.tape.name, self.author.inbound, moment)

    async def preview_erasure(
        self, query: ErasureQuery, request: TapeEntry | None = None
    ) -> Closure:
        """Return what an erasure would remove, requested by this command or by an earlier one."""
        return await self._eraser().collector.collect(query, request or self.command_entry)

    async def erase(
        self, query: ErasureQuery, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult | Closure:
        """Erase what an earlier request asks for; see ``bot.runtime.sessions.erasure.Eraser``."""
        return await self._eraser().erase(query, request, shown)

    async def drop_request(self, query: ErasureQuery) -> None:
        """Erase the words of this command."""
        await self._eraser().drop_request(self.command_entry, query)

    def _eraser(self) -> Eraser:
        # Few conversations erase anything, and what that needs takes more than a megabyte.
        from bot.memory.erasure.closure import ErasureRights
        from bot.memory.erasure.erasure_candidates import CandidateCollector
        from bot.runtime.sessions.erasure import Eraser

        asker, services = self.author, self._services
        owner = asker.role == "owner"
        identity = identity_at(self.tape.name, asker.id)
        who = services.scopes.identity_linker.people.members(identity) if identity else ()
        rights = ErasureRights(asker.private or owner, frozenset(who))
        collector = CandidateCollector(self.memory, rights, owner=owner)
        return Eraser(
            collector,
            services.scopes,
            services.bus.lock_session,
            services.erase_residual_files,
            services.agent.vectors,
            services.derived_files,
            services.note_erased,
        )

    @property
    def presets(self) -> ModelPresets | None:
        """The models to choose from."""
        return self._agent.presets

    def model_line(self) -> str:
        """Return which model the next turn uses, its preset, and what its server refuses."""
        fold = self.fold
        agent = self._agent.for_chat(fold.chosen_preset, private=fold.is_private)
        line = self._named(agent)
        if not (without := agent.model.profile.without):
            return line
        return _("{model}; its server refuses: {parts}", model=line, parts=", ".join(without))

    def _named(self, agent: Agent) -> str:
        if isinstance(agent.model, RefusingModel):
            return _("none: this problem is private, and there is no private model")
        name = agent.model.name
        if name == NotebookModel.name and not agent.preset:
            return _("a notebook (no language model; set `TAPEBOT_MODEL` for one)")
        if not agent.preset:
            private = _("`{model}` (this problem is private)", model=name)
            return private if agent.private else f"`{name}`"
        if agent.private:
            return _(
                "`{model}`, preset `{preset}` (this problem is private)",
                model=name,
                preset=agent.preset,
            )
        return _("`{model}`, preset `{preset}`", model=name, preset=agent.preset)

    @property
    def problems(self) -> Collection[str]:
        """What channels have no connection, one line each."""
        return self._services.problems.values()

    async def imported_tapes(self) -> list[ImportedTape]:
        """Return the conversations that were imported for the person, oldest first."""
        return await self._session.import_reader.tapes()

    def import_pause(self) -> str:
        """Return what reading of imported conversations waits for; empty if for nothing."""
        return self._session.import_reader.waits_for()

    def judge_lines(self) -> list[str]:
        """Return what is wrong with the judge, in a line; none if nothing is."""
        judge = self._agent.judge
        failed = self._agent.failed_trial(judge) if judge is not None else None
        return [] if judge is None or failed is None else [failed_judge_text(judge.name, failed)]

    def consolidation_line(self) -> str:
        """Return the state of consolidation in one line."""
        zone = self._agent.timezone
        if self._session.consolidator.running:
            return _("running")
        if (paused := self._session.consolidator.budget_pause()) is not None:
            return _("waits: {paused}", paused=paused)
        failure = self.fold.consolidation_failure
        if failure is not None:
            when, error = shown_entry_time(failure, zone), reason_text(failure.data.get("error"))
            return _("failed at {when} ({error}); will retry", when=when, error=error)
        if self.fold.last_consolidation is None:
            return _("not needed yet")
        when = shown_entry_time(self.fold.last_consolidation, zone)
        return _("last at {when}", when=when)
