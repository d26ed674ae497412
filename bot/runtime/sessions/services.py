"""What all session workers of a program share."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bot.agent.agent import Agent
from bot.agent.commands.approvals import ApprovalCommands
from bot.agent.commands.registry import CommandRegistry
from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.languages import Languages
from bot.bus import Address, Bus
from bot.memory.session.archive_summary import ArchiveSummary
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.runtime.sessions.derived_files import DerivedFiles, EraseResidualFiles, erase_no_files
from bot.runtime.sessions.poison_messages import PoisonMessages
from bot.runtime.sessions.sent_files import SentFiles
from bot.runtime.sessions.undelivered import Undelivered
from bot.tape.store import TapeStore

Archiver = Callable[[str, str, datetime], Awaitable[ArchiveSummary]]
"""Writes an archive of a session's memory, given session key, id of the request and time."""

StillHasAccess = Callable[[Address, str, bool], Awaitable[bool]]
"""Say whether somebody may still use the bot, given the chat, their id, and whether it is private."""


async def everybody_has_access(_: Address, __: str, ___: bool) -> bool:
    """Let everybody use the bot."""
    return True


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Limits that follow from the size of a model's context window.

    Attributes:
        view_tokens: The most tokens of messages in view.
        memory_tokens: Unconsolidated tokens that start a consolidation.
        prompt_tokens: Tokens of a prompt above which a consolidation is due.
    """

    view_tokens: int
    memory_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class SessionServices:
    """Shared parts and limits.

    Attributes:
        bus: Carries answers.
        store: Stores the tapes.
        agent: Runs turns.
        scopes: The scopes of shared memory.
        commands: Slash commands.
        approvals: Finds the calls that ``/approve`` lets act.
        languages: The languages that people read.
        policy: Decides when to consolidate.
        exports: The folder for exported files.
        archive: Writes memory archives into ``exports``.
        retention_days: Days for which daily notes are kept.
        view_messages: The most messages in view.
        view_tokens: The most tokens of messages in view.
        portion_tokens: Tokens of conversation in one consolidation request.
        archive_timeout: Seconds that ``/new`` may take to consolidate.
        group_context: The most overheard messages that a turn takes in.
        idle_seconds: Seconds after which an idle worker ends.
        most_loaded: How many workers stay for so long; beyond that, those idle for longest end.
        erase_residual_files: Erases words from files other than tapes.
        note_erased: Writes ids to the list that restored backups obey; None without one.
        working_set_hours: Hours after which an unused working set expires.
        derived_files: Readable copies of what is on tapes; None without any.
        undelivered: What platforms refused, until its people are told.
        told_damage: Tape damage that was reported to chats since the start, by tape.
        poison_messages: Evidence against messages that broke the process.
        still_has_access: Says whether somebody whose schedule is due may still use the bot.
        sent_files: Places the files of folders that answers send; None sends only exports.
        problems: Why channels have no connection, by their titles.
        limits_for: Limits for a chosen model, given the size of its window; None takes those above
            for every model.
    """

    bus: Bus
    store: TapeStore
    agent: Agent
    scopes: ScopeRegistry
    commands: CommandRegistry
    approvals: ApprovalCommands
    languages: Languages
    policy: ConsolidationPolicy
    exports: Path
    archive: Archiver
    retention_days: int
    view_messages: int
    view_tokens: int
    portion_tokens: int
    archive_timeout: float
    idle_seconds: float
    most_loaded: int = sys.maxsize
    group_context: int = 0
    erase_residual_files: EraseResidualFiles = erase_no_files
    note_erased: Callable[..., None] | None = None
    working_set_hours: float = 2.0
    derived_files: DerivedFiles | None = None
    told_damage: dict[str, tuple[str, ...]] = field(default_factory=dict)

    undelivered: Undelivered = field(init=False)

    poison_messages: PoisonMessages = field(default_factory=PoisonMessages)
    still_has_access: StillHasAccess = everybody_has_access
    sent_files: SentFiles | None = None
    problems: dict[str, str] = field(default_factory=dict)
    limits_for: Callable[[int], ContextLimits] | None = None

    def __post_init__(self) -> None:
        """Share what could not be delivered."""
        object.__setattr__(self, "undelivered", Undelivered(self.store))

    def view_tokens_for(self, agent: Agent) -> int:
        """Return the most tokens of messages in view of an agent's model."""
        return self._limits(agent).view_tokens

    def policy_for(self, agent: Agent) -> ConsolidationPolicy:
        """Return when to consolidate what an agent's model sees."""
        limits = self._limits(agent)
        return ConsolidationPolicy(self.policy.window, limits.memory_tokens, limits.prompt_tokens)

    def _limits(self, agent: Agent) -> ContextLimits:
        same = (agent.preset, agent.context_tokens) == (
            self.agent.preset,
            self.agent.context_tokens,
        )
        if self.limits_for is None or same:
            return ContextLimits(self.view_tokens, self.policy.tokens, self.policy.prompt_tokens)
        return self.limits_for(agent.context_tokens)
