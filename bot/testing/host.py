"""Run the real bus, tapes and sessions in-process below a fake channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
from anyio.abc import TaskGroup

from bot.agent.agent import Agent, ImageLoader
from bot.agent.approvals import Approvals
from bot.agent.builtin_tools import builtin_tools
from bot.agent.commands.approvals import ApprovalCommands
from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.files import files_command
from bot.agent.commands.language import language_command
from bot.agent.commands.registry import Command, CommandRegistry
from bot.agent.commands.skills import skills_command
from bot.agent.consolidation.judge_trial import JudgeTrials
from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.context import ContextBuilder
from bot.agent.languages import Languages
from bot.agent.skills.skill_library import SkillLibrary
from bot.agent.skills.skill_sources import SkillFetcher
from bot.agent.spending.metered_model import MeteredModel
from bot.agent.spending.spending import Spending
from bot.agent.tools.files import file_tools
from bot.agent.tools.registry import Tool, ToolRegistry
from bot.agent.views.registry import DEFAULT_BUILDER
from bot.agent.workspace_files import WorkspaceFiles
from bot.bus.local import LocalBus
from bot.bus.media.blobs import FolderBlobs
from bot.bus.ports import Bus
from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeNotFound
from bot.core.telemetry.redaction import Redactor
from bot.llm.base import Model
from bot.llm.presets import ModelPresets
from bot.mcp_client.client import McpClient
from bot.mcp_client.command import mcp_command
from bot.mcp_client.login_store import FileLoginStore
from bot.mcp_client.settings import McpServer
from bot.memory.records.turn_marks import unfold
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.vector_index import VectorIndex
from bot.runtime.app.file_services import make_file_services
from bot.runtime.app.residual_files import ResidualFiles
from bot.runtime.app.scheduler import Scheduler
from bot.runtime.sessions.derived_files import EraseResidualFiles, erase_no_files
from bot.runtime.sessions.services import (
    SessionServices,
    StillHasAccess,
    everybody_has_access,
)
from bot.runtime.sessions.supervisor import Supervisor
from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore
from bot.testing.fake_channel import FakeChannel
from bot.testing.manual_clock import ManualClock
from bot.transfer.erased_list import ErasedList
from bot.transfer.memory_export import MemoryArchives

POLL = 0.002
"""Seconds between checks of state that has no event, such as a tape on disk."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Limits that a test may want below the program's defaults; see ``SessionServices``."""

    window: int = 100
    memory_tokens: int = 60_000
    prompt_tokens: int = 76_800
    context_tokens: int = 128_000
    view_messages: int = 200
    view_tokens: int = 96_000
    max_steps: int = 12
    retention_days: int = 30
    archive_timeout: float = 10.0
    idle_seconds: float = 300.0
    most_loaded: int = 128
    session_limit: int = 100
    timezone: str = "UTC"
    group_context: int = 0


@dataclass(slots=True)
class Host:
    """A running program that serves sessions.

    Attributes:
        bus: The message bus.
        store: The tape store.
        services: Services shared by sessions.
        supervisor: Runs the sessions.
        clock: The test's clock.
        channel: A running channel named ``fake``.
        mcp: The MCP servers; None if none were given.
    """

    bus: LocalBus
    store: FileTapeStore
    services: SessionServices
    supervisor: Supervisor
    clock: Clock
    channel: FakeChannel
    mcp: McpClient | None
    _tasks: TaskGroup = field(repr=False)

    def add_channel(self, name: str) -> FakeChannel:
        """Start and return another channel."""
        channel = FakeChannel(self.bus.channel(name), name, now=self.clock.now)
        self._tasks.start_soon(channel.run)
        return channel

    async def tape(self, session: str = "fake:1") -> list[TapeEntry]:
        """Return all entries of a session's tape, sealed ones too; empty if there is no tape."""
        try:
            return await self.store.read(session)
        except TapeNotFound:
            return []

    async def events(self, name: str, session: str = "fake:1") -> list[TapeEntry]:
        """Return a tape's events and anchors with this name, also those that messages stand for."""
        marks = (mark for entry in await self.tape(session) for mark in unfold(entry))
        return [mark for mark in marks if mark.name == name]

    async def wait_for_event(
        self, name: str, count: int = 1, *, session: str = "fake:1", within: float = 60.0
    ) -> list[TapeEntry]:
        """Wait until a tape has this many events and anchors with this name; return them.

        Raises:
            TimeoutError: There are too few in time.
        """
        with anyio.fail_after(within):
            while len(found := await self.events(name, session)) < count:  # noqa: ASYNC110
                await anyio.sleep(POLL)  # files have no event
        return found

    async def wait_until(self, condition: Callable[[], bool], *, within: float = 60.0) -> None:
        """Wait until a condition holds that no channel shows.

        Raises:
            TimeoutError: It does not hold in time.
        """
        with anyio.fail_after(within):
            while not condition():  # noqa: ASYNC110
                await anyio.sleep(POLL)  # the condition has no event

    async def wait_for_pending(self, count: int, *, within: float = 60.0) -> None:
        """Wait until exactly this many accepted messages are pending.

        Raises:
            TimeoutError: The number is not reached in time.
        """
        with anyio.fail_after(within):
            while (await self.bus.statistics())["pending"] != count:  # noqa: ASYNC110
                await anyio.sleep(POLL)  # the number has no event


@asynccontextmanager
async def session_host(
    folder: Path,
    model: Model,
    *,
    clock: Clock | None = None,
    bounds: HostLimits | None = None,
    tools: Sequence[Tool[Any]] = (),
    commands: CommandRegistry | None = None,
    images: ImageLoader | None = None,
    builder: ContextBuilder = DEFAULT_BUILDER,
    vectors: Callable[[FileTapeStore], VectorIndex] | None = None,
    traces: Callable[[LocalBus], EraseResidualFiles] = lambda _: erase_no_files,
    over: Callable[[LocalBus], Bus] = lambda bus: bus,
    metered: bool = False,
    schedules: bool = False,
    presets: ModelPresets | None = None,
    mcp: Mapping[str, McpServer] | None = None,
    files_mb: int = 0,
    still_has_access: StillHasAccess = everybody_has_access,
    judge_trials: JudgeTrials | None = None,
    sync: bool = False,
) -> AsyncIterator[Host]:
    """Run tapes, bus and sessions with this model; an existing folder is continued.

    On exit everything is cancelled at once, as by a signal.

    Args:
        folder: Folder for tapes, journal, workspace and exports.
        model: The model that answers.
        clock: Clock; a ``ManualClock`` by default.
        bounds: Limits of the sessions.
        tools: Tools in addition to the built-in ones.
        commands: Command registry; the built-in commands by default.
        images: Loader of images.
        builder: The context builder.
        vectors: Creates the index for semantic search, given the store.
        traces: Creates the function that erases words in files beside tapes, given the bus.
        over: Wraps the bus that sessions and the channel ``fake`` use.
        metered: Count what the model costs, and keep budgets.
        schedules: Whether the scheduler runs, so that reminders and tasks come when they are due.
        presets: Models to choose from; the first should be ``model``.
        mcp: MCP servers by name; they are reached by the machine's clock.
        files_mb: Megabytes of files that a person or group can keep; 0 keeps none.
        still_has_access: Says whether what is scheduled still comes; see ``SessionServices``.
        judge_trials: Has the judge tried before it rules; None trusts the model that can judge.
        sync: Whether what is written is on the disk before it counts, as it is in the program.

    Yields:
        The running host.
    """
    clock, bounds = clock or ManualClock(), bounds or HostLimits()
    store = FileTapeStore(folder / "tapes", sync=sync, clock=clock)
    bus = LocalBus(folder / "bus", max_queued_messages=bounds.session_limit, sync=sync, clock=clock)
    seen = over(bus)
    scopes = ScopeRegistry(store, clock)
    members = scopes.identity_linker.people.members
    languages = Languages(store, members, "en")
    spending = Spending(store, clock, ZoneInfo(bounds.timezone), members) if metered else None
    model = model if spending is None else MeteredModel(model, spending)
    blobs = FolderBlobs(folder / "blobs")
    skills = SkillLibrary(
        WorkspaceFiles(folder / "workspace", clock),
        store,
        blobs,
        linked=members,
        fetcher=SkillFetcher(folder / "incoming-skills"),
        send=bus.send,
        language_of=languages.of,
    )
    agent = replace(_agent(skills, model, clock, bounds, tools), spending=spending)
    by_meaning = vectors(store) if vectors is not None else None
    approvals = Approvals(store)
    agent = replace(agent, images=images, builder=builder, vectors=by_meaning, approvals=approvals)
    agent = replace(agent, presets=presets, judge_trials=judge_trials)
    servers = None if mcp is None else _mcp_client(folder, mcp, store, scopes, bus)
    if servers is not None:
        agent = replace(agent, tools=ToolRegistry([*builtin_tools(agent), *tools], servers))
    services = _services(
        folder,
        bounds,
        bus=seen,
        store=store,
        agent=agent,
        scopes=scopes,
        commands=commands,
        more_commands=[
            skills_command(skills),
            *([] if servers is None else [mcp_command(servers)]),
        ],
    )
    services = replace(
        services,
        erase_residual_files=traces(bus),
        note_erased=ErasedList(folder, None, services.agent.clock).note,
        still_has_access=still_has_access,
    )
    if files_mb:
        services = _with_files(folder, services, bus, files_mb, tools)
    supervisor = Supervisor(services)
    channel = FakeChannel(seen.channel("fake"), now=clock.now)
    scheduler = Scheduler(store, seen, clock) if schedules else None
    running = [
        service.run
        for service in (supervisor, store, channel, scheduler, by_meaning, spending, servers)
        if service is not None
    ]
    try:
        async with _running(running) as tasks:
            yield Host(bus, store, services, supervisor, clock, channel, servers, tasks)
    finally:
        with anyio.CancelScope(shield=True):
            await bus.aclose()
            await store.close()


@asynccontextmanager
async def _running(
    services: Sequence[Callable[[], Coroutine[Any, Any, object]]],
) -> AsyncIterator[TaskGroup]:
    """Run services within the block."""
    try:
        async with anyio.create_task_group() as tasks:
            for service in services:
                tasks.start_soon(service)
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # A test's own failure is easier to read without the exception group.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


def _services(
    folder: Path,
    bounds: HostLimits,
    *,
    bus: Bus,
    store: FileTapeStore,
    agent: Agent,
    scopes: ScopeRegistry,
    commands: CommandRegistry | None,
    more_commands: Sequence[Command],
) -> SessionServices:
    assert agent.approvals is not None
    approvals = ApprovalCommands(agent.approvals, bus, agent.tools)
    languages = Languages(store, scopes.identity_linker.people.members, "en")
    return SessionServices(
        bus=bus,
        store=store,
        agent=agent,
        scopes=scopes,
        commands=commands
        or builtin_commands([*approvals.commands(), language_command(languages), *more_commands]),
        approvals=approvals,
        languages=languages,
        policy=ConsolidationPolicy(bounds.window, bounds.memory_tokens, bounds.prompt_tokens),
        exports=folder / "exports",
        archive=MemoryArchives(store, folder / "exports", ZoneInfo(bounds.timezone)).write,
        retention_days=bounds.retention_days,
        view_messages=bounds.view_messages,
        view_tokens=bounds.view_tokens,
        portion_tokens=bounds.context_tokens // 3,
        archive_timeout=bounds.archive_timeout,
        idle_seconds=bounds.idle_seconds,
        most_loaded=bounds.most_loaded,
        group_context=bounds.group_context,
    )


def _with_files(
    folder: Path,
    services: SessionServices,
    bus: LocalBus,
    files_mb: int,
    tools: Sequence[Tool[Any]],
) -> SessionServices:
    """Return services with folders of files, whose blobs are in the folder."""
    blobs = FolderBlobs(folder / "blobs")
    erase = ResidualFiles(folder, bus, blobs).erase
    files = make_file_services(
        folder,
        services.store,
        blobs,
        max_bytes=files_mb * 1_000_000,
        erase_blobs=erase,
    )
    agent = replace(services.agent, files=files.service)
    own = [*builtin_tools(agent), *file_tools(files.service), *tools]
    approvals = services.approvals.commands()
    return replace(
        services,
        agent=replace(agent, tools=ToolRegistry(own)),
        commands=builtin_commands([*approvals, files_command(files.service)]),
        erase_residual_files=erase,
        sent_files=files.sent,
        archive=MemoryArchives(services.store, folder / "exports", agent.timezone, blobs).write,
        derived_files=files.mirror,
    )


def _mcp_client(
    folder: Path,
    servers: Mapping[str, McpServer],
    store: FileTapeStore,
    scopes: ScopeRegistry,
    bus: LocalBus,
) -> McpClient:
    values = [
        value.get_secret_value()
        for server in servers.values()
        for value in (*server.env.values(), *server.headers.values())
    ]
    return McpClient(
        servers,
        store,
        scopes,
        SystemClock(),
        send=bus.send,
        language_of=Languages(store, scopes.identity_linker.people.members, "en").of,
        redact=Redactor(values),
        blobs=FolderBlobs(folder / "blobs", clean=False),
        logins=FileLoginStore(folder / "mcp"),
    )


def _agent(
    skills: SkillLibrary,
    model: Model,
    clock: Clock,
    bounds: HostLimits,
    tools: Sequence[Tool[Any]],
) -> Agent:
    agent = Agent(
        model=model,
        tools=ToolRegistry(),
        workspace=skills.workspace,
        skills=skills,
        clock=clock,
        timezone=ZoneInfo(bounds.timezone),
        timezone_name=bounds.timezone,
        max_steps=bounds.max_steps,
        context_tokens=bounds.context_tokens,
        judge=model if model.profile.can_judge else None,
    )
    return replace(agent, tools=ToolRegistry([*builtin_tools(agent), *tools]))
