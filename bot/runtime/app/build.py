"""Build the program's parts from the settings, and close them at the end."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
from filelock import FileLock, Timeout

from bot.agent.agent import Agent
from bot.agent.approvals import Approvals
from bot.agent.builtin_tools import builtin_tools
from bot.agent.commands.approvals import ApprovalCommands
from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.language import language_command
from bot.agent.commands.link import link_commands
from bot.agent.commands.pair import pair_command
from bot.agent.commands.registry import Command
from bot.agent.consolidation.judge_trial import JUDGES_FILE, JudgeTrials
from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.languages import Languages
from bot.agent.spending.spending import Spending
from bot.agent.tools.files import file_tools
from bot.agent.tools.registry import ToolRegistry
from bot.agent.views.registry import context_builder
from bot.bus import Address, Answer, Bus
from bot.bus.access.control import AccessControl, open_access_control
from bot.bus.access.store import AccessStore
from bot.bus.instrumented import InstrumentedBus
from bot.bus.local import LocalBus
from bot.bus.media.attachments import AttachmentService
from bot.bus.media.blobs import Blobs, FolderBlobs
from bot.bus.media.documents import MAX_CHARACTERS
from bot.core.clock import Clock, SystemClock
from bot.core.errors import SettingsError
from bot.core.files import PRIVATE_FILE, private_directory
from bot.core.i18n import _
from bot.core.ids import new_id
from bot.llm.base import Model
from bot.memory.gate.write_gate import GateThresholds, WriteGate
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.state.fold_loader import is_private_now
from bot.memory.session.vector_index import VectorIndex
from bot.runtime.app.code_tools import make_code_tools
from bot.runtime.app.database_services import DatabaseServices, open_database_services
from bot.runtime.app.extensions import Extensions, make_extensions
from bot.runtime.app.memory_clients import MemoryRequests, make_memory_requests
from bot.runtime.app.models import Models, make_models, meter
from bot.runtime.app.residual_files import ResidualFiles
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.app.web import WebSetup
from bot.runtime.app.web_tools import make_web_tools
from bot.runtime.sessions.poison_messages import PoisonMessages
from bot.runtime.sessions.services import ContextLimits, SessionServices
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.settings import Settings
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.memory_export import MemoryArchives

logger = logging.getLogger(__name__)

_MOST_LOADED = 128
"""How many idle sessions stay in memory; opening one again takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class App:
    """The program's parts, built and open.

    Attributes:
        settings: The settings that it was built from.
        bus: Carries messages between channels and sessions.
        store: Stores the tapes.
        model: The language model, with its fallbacks and retries.
        services: What session workers share.
        supervisor: Runs session workers.
        access_control: Decides who may use the bot.
        attachments: Fetches, stores and reads files that people send.
        vectors: Index for semantic search; None without an embedding model.
        spending: Counts what models cost.
        database_services: Connections, wake-ups and leases; None without a database.
        web: Configuration and logins of the website.
        extensions: MCP servers, plug-ins, skills and folders of files.
    """

    settings: Settings
    bus: InstrumentedBus
    store: TapeStore
    model: Model
    services: SessionServices
    supervisor: Supervisor
    access_control: AccessControl
    attachments: AttachmentService
    vectors: VectorIndex | None
    spending: Spending
    database_services: DatabaseServices | None
    web: WebSetup
    memory_requests: MemoryRequests
    extensions: Extensions


@asynccontextmanager
async def open_app(settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Build all parts of the program; close them at the end.

    Raises:
        TapeLocked: Another tapebot runs in this home folder.
        ModelUnavailable: The configured model cannot be used here.
        DatabaseUnavailable: The database cannot be reached.
        DatabaseOutdated: The database has another schema version; the text says what to do.
    """
    clock = clock or SystemClock()
    settings = _with_port(settings)
    home = _home(settings)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database_services(settings))
        if database is not None:
            stack.enter_context(_lock_home(home))
        store = await stack.enter_async_context(
            open_tape_store(settings, clock=clock, shared=database)
        )
        bus = _bus(settings, home, clock, database)
        access_control = await stack.enter_async_context(
            _open_access_control(settings, home, clock, bus, database)
        )
        models = make_models(settings)
        app = _assemble(
            settings,
            clock,
            database=database,
            store=store,
            bus=bus,
            access_control=access_control,
            models=models,
        )
        logger.info("started with %s in %s", models.main.name, home)
        try:
            yield app
        finally:
            with anyio.CancelScope(shield=True):
                await bus.aclose()
                await models.aclose()


def _assemble(
    settings: Settings,
    clock: Clock,
    *,
    database: DatabaseServices | None,
    store: TapeStore,
    bus: InstrumentedBus,
    access_control: AccessControl,
    models: Models,
) -> App:
    """Build what needs no closing from what does."""
    blobs = _blobs(settings.home, database)
    approvals = Approvals(store)
    scopes = ScopeRegistry(store, clock, gate=_gate(settings))
    members = scopes.identity_linker.people.members
    languages = Languages(store, members, settings.shown_language)
    spending = Spending(store, clock, ZoneInfo(settings.timezone), members)
    models = meter(models, spending)
    vectors = _vectors(settings, store, models, clock)
    residual = ResidualFiles(settings.home, bus, blobs)
    extensions = make_extensions(
        settings,
        store=store,
        scopes=scopes,
        clock=clock,
        bus=bus,
        language_of=languages.of,
        blobs=blobs,
        residual=residual,
        database=database,
    )
    web = WebSetup(settings, store, access_control, scopes, clock, database is not None)
    agent = _agent(
        settings, clock, models, spending, blobs=blobs, vectors=vectors, extensions=extensions
    )
    services = _services(
        settings,
        bus=bus,
        store=store,
        agent=replace(agent, approvals=approvals),
        scopes=scopes,
        approvals=ApprovalCommands(approvals, bus, agent.tools),
        languages=languages,
        commands=[
            language_command(languages),
            pair_command(access_control),
            *link_commands(bus.send, languages.of),
            *web.commands(),
            *extensions.commands(),
        ],
        residual=residual,
        blobs=blobs,
        extensions=extensions,
    )
    services = replace(services, still_has_access=access_control.still_has_access)
    return App(
        settings=settings,
        bus=bus,
        store=store,
        model=models.main,
        services=services,
        supervisor=Supervisor(services),
        access_control=access_control,
        attachments=_attachments(settings, blobs, models, services.agent, store),
        vectors=vectors,
        spending=spending,
        database_services=database,
        web=web,
        memory_requests=make_memory_requests(store, scopes, access_control, clock, settings),
        extensions=extensions,
    )


@contextmanager
def _lock_home(home: Path) -> Iterator[None]:
    """Lock the home folder against other processes that share the database.

    Raises:
        SettingsError: Another process runs in it.
    """
    lock = FileLock(home / "process.lock", mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise SettingsError(
            _(
                "TAPEBOT_HOME: another tapebot runs in {home}; give each process its own folder",
                home=home,
            )
        ) from error
    try:
        yield
    finally:
        lock.release()


def _bus(
    settings: Settings, home: Path, clock: Clock, database: DatabaseServices | None
) -> InstrumentedBus:
    return InstrumentedBus(_plain_bus(settings, home, clock, database))


def _plain_bus(
    settings: Settings, home: Path, clock: Clock, database: DatabaseServices | None
) -> Bus:
    if database is None:
        durable = settings.tape_sync == "always"
        limit = settings.session_limit
        return LocalBus(home / "bus", max_queued_messages=limit, sync=durable, clock=clock)
    from bot.bus.postgres import PostgresBus

    return PostgresBus(
        database.database,
        database.wakeups,
        holder=database.holder,
        max_queued_messages=settings.session_limit,
        lease=settings.lease_seconds,
        clock=clock,
        exports=home / "exports",
    )


def _erased_list(settings: Settings, clock: Clock) -> Callable[..., None] | None:
    """Return what notes erased ids for restored backups; None for homes in a database."""
    if settings.database_url is not None:
        return None

    def note(tape: str, **erased: Any) -> None:
        # Few conversations erase anything.
        from bot.transfer.erased_list import ErasedList

        workspace = settings.workspace_id or ""
        ErasedList(settings.home, settings.backup_to, clock, workspace).note(tape, **erased)

    return note


def _blobs(home: Path, database: DatabaseServices | None) -> Blobs:
    if database is None:
        return FolderBlobs(home / "blobs")
    from bot.bus.media.postgres_blobs import PostgresBlobs

    return PostgresBlobs(database.database)


def _with_port(settings: Settings) -> Settings:
    """Return the settings with a free port where any will do, so that all links name the real one."""
    host, _colon, port = (settings.web_listen or "").rpartition(":")
    if port != "0":
        return settings
    from bot.core.http.sockets import bind

    with bind(f"{host}:0") as bound:
        listen = f"{host}:{bound.getsockname()[1]}"
    return settings.model_copy(update={"web_listen": listen})


def _home(settings: Settings) -> Path:
    try:
        return private_directory(settings.home)
    except OSError as error:
        raise SettingsError(
            _(
                "TAPEBOT_HOME: {home} cannot be created ({strerror})",
                home=settings.home,
                strerror=error.strerror,
            )
        ) from error


def _open_access_control(
    settings: Settings, home: Path, clock: Clock, bus: Bus, database: DatabaseServices | None
) -> AbstractAsyncContextManager[AccessControl]:
    async def send_notice(address: Address, text: str) -> None:
        await bus.send(Answer(address, new_id("notice"), text))

    home_or_store: Path | AccessStore = home
    if database is not None:
        from bot.bus.access.postgres_store import PostgresAccessStore

        home_or_store = PostgresAccessStore(database.database)
    return open_access_control(
        home_or_store,
        owners=settings.owners,
        allow=settings.allow,
        clock=clock,
        send_notice=send_notice,
    )


def _vectors(
    settings: Settings, store: TapeStore, models: Models, clock: Clock
) -> VectorIndex | None:
    folder = settings.home / "vectors"
    if models.embedder is None:
        if folder.is_dir():
            # Without an index, erasures would not reach these files.
            shutil.rmtree(folder)
        return None
    workspace = settings.workspace_id or ""
    return VectorIndex(
        folder,
        store,
        models.embedder,
        workspace=workspace,
        clock=clock,
        private=models.private_embedder,
    )


def _attachments(
    settings: Settings, blobs: Blobs, models: Models, agent: Agent, store: TapeStore
) -> AttachmentService:
    async def may_transcribe(session: str) -> bool:
        if models.private_transcriber or not session:
            return True
        return not await is_private_now(TapeService(store, session))

    return AttachmentService(
        blobs,
        max_bytes=settings.max_file_mb * 1_000_000,
        transcriber=models.transcriber,
        may_transcribe=may_transcribe,
        # A document must leave room for the conversation about it.
        max_characters=min(MAX_CHARACTERS, agent.context_tokens),
    )


def _agent(
    settings: Settings,
    clock: Clock,
    models: Models,
    spending: Spending,
    *,
    blobs: Blobs,
    vectors: VectorIndex | None,
    extensions: Extensions,
) -> Agent:
    skills, files = extensions.skills, extensions.files.service
    agent = Agent(
        model=models.main,
        tools=ToolRegistry(),
        workspace=skills.workspace,
        skills=skills,
        clock=clock,
        timezone=ZoneInfo(settings.timezone),
        timezone_name=settings.timezone,
        max_steps=settings.max_steps,
        context_tokens=models.presets.default.context_tokens,
        builder=context_builder(settings.context_builder),
        images=blobs.get,
        recall_tokens=settings.recall_tokens,
        facts_tokens=settings.facts_tokens,
        vectors=vectors,
        judge=models.judge,
        judge_trials=JudgeTrials(settings.home / JUDGES_FILE),
        spending=spending,
        presets=models.presets,
        files=files,
    )
    tools = [
        *builtin_tools(agent),
        *make_web_tools(settings, blobs, clock),
        *make_code_tools(settings, blobs),
        *file_tools(files),
    ]
    added = extensions.plugins.tools(tools)
    return replace(agent, tools=ToolRegistry([*tools, *added], extensions.mcp))


def _services(
    settings: Settings,
    *,
    bus: Bus,
    store: TapeStore,
    agent: Agent,
    scopes: ScopeRegistry,
    approvals: ApprovalCommands,
    languages: Languages,
    commands: list[Command],
    residual: ResidualFiles,
    blobs: Blobs,
    extensions: Extensions,
) -> SessionServices:
    divisor = agent.builder.budget_divisor
    # Messages outside the view must be in a summary, so both bounds shrink together.
    messages = -(-settings.memory_window // divisor)

    def limits_for(window: int) -> ContextLimits:
        return ContextLimits(
            view_tokens=min(settings.view_tokens or window, window * 3 // 4) // divisor,
            memory_tokens=min(settings.memory_tokens or window, window // 2) // divisor,
            prompt_tokens=window * 3 // 5,
        )

    window = agent.context_tokens
    limits = limits_for(window)
    own = [*commands, *approvals.commands()]
    added = extensions.plugins.commands(builtin_commands(own).names())
    exports = settings.home / "exports"
    return SessionServices(
        bus=bus,
        store=store,
        agent=agent,
        scopes=scopes,
        erase_residual_files=residual.erase,
        note_erased=_erased_list(settings, agent.clock),
        sent_files=extensions.files.sent,
        commands=builtin_commands([*own, *added]),
        approvals=approvals,
        languages=languages,
        policy=ConsolidationPolicy(
            window=messages,
            tokens=(settings.memory_tokens or window // 2) // divisor,
            prompt_tokens=limits.prompt_tokens,
        ),
        exports=exports,
        archive=MemoryArchives(store, exports, agent.timezone, blobs).write,
        retention_days=settings.retention_days,
        view_messages=messages * 2,
        view_tokens=(settings.view_tokens or window * 3 // 4) // divisor,
        portion_tokens=agent.consolidation_tokens // 3,
        archive_timeout=settings.archive_timeout,
        idle_seconds=settings.idle_seconds,
        # The bus of a fleet limits what a worker holds, and releases the idle ones itself.
        most_loaded=_MOST_LOADED if settings.database_url is None else sys.maxsize,
        group_context=settings.group_context,
        working_set_hours=settings.working_set_hours,
        derived_files=extensions.files.mirror,
        poison_messages=PoisonMessages(settings.home),
        limits_for=limits_for,
    )


def _gate(settings: Settings) -> WriteGate:
    return WriteGate(
        GateThresholds(
            severe=settings.gate_severe,
            moderate=settings.gate_moderate,
            minimal=settings.gate_minimal,
            grounded=settings.gate_grounded,
            aligned=settings.gate_aligned,
            pending_hours=settings.gate_pending_hours,
        )
    )
