"""What all session workers of a program share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bot.agent.agent import Agent
from bot.agent.commands.registry import CommandRegistry
from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.bus import Bus
from bot.memory.archive_summary import ArchiveSummary
from bot.memory.scope_registry import ScopeRegistry
from bot.runtime.sessions.erasure import DerivedFiles, EraseResidualFiles, erase_no_files
from bot.runtime.sessions.poison_messages import PoisonMessages
from bot.tape.store import TapeStore

Archiver = Callable[[str, str, datetime], Awaitable[ArchiveSummary]]
"""Writes an archive of a session's memory: its key, what it was asked for by, and when."""


@dataclass(frozen=True, slots=True)
class SessionServices:
    """Shared parts and bounds.

    Attributes:
        bus: Where answers go.
        store: Where tapes live.
        agent: Runs turns.
        scopes: Whose facts there are.
        commands: Slash commands.
        policy: When to consolidate.
        exports: The folder for exports.
        archive: Writes archives into it.
        retention_days: How long daily notes are kept.
        view_messages: Bound on messages in view.
        view_tokens: Bound on their tokens.
        portion_tokens: Conversation in one consolidation request.
        archive_timeout: Seconds that ``/new`` may take to consolidate.
        group_context: Overheard messages that a turn takes in at most.
        idle_seconds: After this long without anything to do a worker leaves.
        erase_residual_files: Erases words where they are kept beside tapes.
        working_set_hours: How long a working set lives unused.
        memory_files: Made from tapes, for people to read; None where nobody wants them.
        told_damage: What chats were told of damage to their tapes since the start.

        poison_messages: Messages that broke what handled them.
    """

    bus: Bus
    store: TapeStore
    agent: Agent
    scopes: ScopeRegistry
    commands: CommandRegistry
    policy: ConsolidationPolicy
    exports: Path
    archive: Archiver
    retention_days: int
    view_messages: int
    view_tokens: int
    portion_tokens: int
    archive_timeout: float
    idle_seconds: float
    group_context: int = 0
    erase_residual_files: EraseResidualFiles = erase_no_files
    working_set_hours: float = 2.0
    memory_files: DerivedFiles | None = None
    told_damage: dict[str, tuple[str, ...]] = field(default_factory=dict)

    poison_messages: PoisonMessages = field(default_factory=PoisonMessages)
