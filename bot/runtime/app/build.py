"""Build the program's parts from the settings, and close them at the end."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
from filelock import FileLock, Timeout

from bot.agent.agent import Agent
from bot.agent.builtin_tools import builtin_tools
from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.agent.commands.pair import pair_command
from bot.agent.commands.registry import Command
from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.tools.registry import ToolRegistry
from bot.agent.views.registry import context_builder
from bot.agent.workspace import Workspace
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
from bot.core.ids import new_id
from bot.llm.base import Model
from bot.llm.embeddings.base import Embedder
from bot.llm.embeddings.registry import build_embedder
from bot.llm.transcription import Transcriber
from bot.memory.gate.policy import GateThresholds, WriteGate
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.vector_index import VectorIndex
from bot.runtime.app.database_services import DatabaseServices, open_database_services
from bot.runtime.app.residual_files import ResidualFiles
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.app.web import WebSetup
from bot.runtime.models import build_model
from bot.runtime.sessions.poison_messages import PoisonMessages
from bot.runtime.sessions.services import SessionServices
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore
from bot.transfer.memory_archive import MemoryArchives
from bot.transfer.memory_folder import MemoryFolder

logger = logging.getLogger(__name__)


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
        database_services: Connections, wake-ups and leases; None without a database.
        web: Configuration and logins of the website.
        memory_files: Readable copies of memory; None without a folder for them.
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
    database_services: DatabaseServices | None
    web: WebSetup
    memory_files: MemoryFolder | None


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
    home = _home(settings)
    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(open_database_services(settings))
        if shared is not None:
            stack.enter_context(_alone_in(home))
        store = await stack.enter_async_context(
            open_tape_store(settings, clock=clock, shared=shared)
        )
        bus = _bus(settings, home, clock, shared)
        access_control = await stack.enter_async_context(
            _open_door(settings, home, clock, bus, shared)
        )
        model = make_model(settings)
        judge = make_judge(settings, model)
        blobs = _blobs(home, shared)
        embedder = _embedder(settings)
        vectors = _vectors(settings, store, embedder, clock)
        scopes = ScopeRegistry(store, clock, gate=_gate(settings))
        memory_files = make_memory_files(settings, store, scopes, clock)
        web = WebSetup(settings, store, access_control, scopes, clock, shared is not None)
        services = _services(
            settings,
            clock=clock,
            bus=bus,
            store=store,
            model=model,
            judge=judge,
            scopes=scopes,
            commands=[pair_command(access_control), *link_commands(bus.send), *web.commands()],
            blobs=blobs,
            vectors=vectors,
            memory_files=memory_files,
        )
        logger.info("started with %s in %s", model.name, home)
        transcriber = _transcriber(settings)
        media = AttachmentService(
            blobs,
            max_bytes=settings.max_file_mb * 1_000_000,
            transcriber=transcriber,
            # A document must leave room for the conversation about it.
            max_characters=min(MAX_CHARACTERS, services.agent.context_tokens),
        )
        supervisor = Supervisor(services)
        try:
            yield App(
                settings,
                bus,
                store,
                model,
                services,
                supervisor,
                access_control,
                media,
                vectors,
                shared,
                web,
                memory_files,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await bus.aclose()
                await model.aclose()
                if judge is not None and judge is not model:
                    await judge.aclose()
                if transcriber is not None:
                    await transcriber.aclose()
                if embedder is not None:
                    await embedder.aclose()


@contextmanager
def _alone_in(home: Path) -> Iterator[None]:
    """Lock the home folder against other processes that share the database.

    Raises:
        SettingsError: Another process runs in it.
    """
    lock = FileLock(home / "process.lock", mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise SettingsError(
            f"TAPEBOT_HOME: another tapebot runs in {home}; give each process a folder of its own"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _bus(
    settings: Settings, home: Path, clock: Clock, shared: DatabaseServices | None
) -> InstrumentedBus:
    return InstrumentedBus(_plain_bus(settings, home, clock, shared))


def _plain_bus(
    settings: Settings, home: Path, clock: Clock, shared: DatabaseServices | None
) -> Bus:
    if shared is None:
        durable = settings.tape_sync == "always"
        limit = settings.session_limit
        return LocalBus(home / "bus", session_limit=limit, sync=durable, clock=clock)
    from bot.bus.postgres import PostgresBus

    return PostgresBus(
        shared.database,
        shared.wakeups,
        holder=shared.holder,
        session_limit=settings.session_limit,
        lease=settings.lease_seconds,
        clock=clock,
        exports=home / "exports",
    )


def _blobs(home: Path, shared: DatabaseServices | None) -> Blobs:
    if shared is None:
        return FolderBlobs(home / "blobs")
    from bot.bus.media.postgres_blobs import PostgresBlobs

    return PostgresBlobs(shared.database)


def _home(settings: Settings) -> Path:
    try:
        return private_directory(settings.home)
    except OSError as error:
        raise SettingsError(
            f"TAPEBOT_HOME: {settings.home} cannot be made ({error.strerror})"
        ) from error


def make_model(settings: Settings) -> Model:
    """Return the configured model, with its fallbacks, retries and bounds.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    key = settings.model_api_key
    return build_model(
        settings.model,
        limiter=anyio.CapacityLimiter(settings.model_concurrency),
        api_base=settings.model_api_base,
        api_key=key.get_secret_value() if key is not None else None,
        fallbacks=settings.fallback_models,
        timeout=settings.model_timeout,
    )


def make_judge(settings: Settings, model: Model) -> Model | None:
    """Return the model that judges claims; None if no model can.

    Unless it is set, this is the model itself.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    if settings.judge_model is None:
        return model if model.profile.can_judge else None
    if settings.judge_model in ("none", "offline"):
        return None
    api_base, api_key = _endpoint(settings, settings.judge_model)
    return build_model(
        settings.judge_model,
        limiter=anyio.CapacityLimiter(settings.model_concurrency),
        api_base=api_base,
        api_key=api_key,
        timeout=settings.model_timeout,
    )


def _open_door(
    settings: Settings, home: Path, clock: Clock, bus: Bus, shared: DatabaseServices | None
) -> AbstractAsyncContextManager[AccessControl]:
    async def tell(address: Address, text: str) -> None:
        await bus.send(Answer(address, new_id("notice"), text))

    place: Path | AccessStore = home
    if shared is not None:
        from bot.bus.access.postgres_store import PostgresAccessStore

        place = PostgresAccessStore(shared.database)
    return open_access_control(
        place, owners=settings.owners, allow=settings.allow, clock=clock, tell=tell
    )


def _transcriber(settings: Settings) -> Transcriber | None:
    name = settings.transcription_model
    if name is None:
        return None
    api_base, api_key = _endpoint(settings, name)
    return Transcriber(name, api_base=api_base, api_key=api_key)


def _embedder(settings: Settings) -> Embedder | None:
    name = settings.embedding_model
    if name is None:
        return None
    api_base, api_key = _endpoint(settings, name)
    return build_embedder(name, api_base=api_base, api_key=api_key)


def _vectors(
    settings: Settings, store: TapeStore, embedder: Embedder | None, clock: Clock
) -> VectorIndex | None:
    folder = settings.home / "vectors"
    if embedder is None:
        if folder.is_dir():
            # Without an index, erasures would not reach these files.
            shutil.rmtree(folder)
        return None
    workspace = settings.workspace_id or ""
    return VectorIndex(folder, store, embedder, workspace=workspace, clock=clock)


def make_memory_files(
    settings: Settings, store: TapeStore, scopes: ScopeRegistry, clock: Clock
) -> MemoryFolder | None:
    """Return the writer of readable memory files; None if no folder for them is set."""
    if settings.memory_files is None:
        return None
    zone = ZoneInfo(settings.timezone)
    files = MemoryFolder(settings.memory_files, store, scopes, zone, clock)
    scopes.observer = files.add_entry
    return files


def _endpoint(settings: Settings, name: str) -> tuple[str | None, str | None]:
    """Return the API address and key for a model besides the main one.

    The main model's address and key apply only to models of the same provider.
    """
    provider, same = _provider(name), _provider(settings.model or "")
    if provider != same:
        return None, None
    key = settings.model_api_key
    return settings.model_api_base, key.get_secret_value() if key is not None else None


def _provider(name: str) -> str:
    # litellm has two provider names for Ollama: one per API endpoint.
    return name.partition("/")[0].replace("ollama_chat", "ollama")


def _services(
    settings: Settings,
    *,
    clock: Clock,
    bus: Bus,
    store: TapeStore,
    model: Model,
    judge: Model | None,
    scopes: ScopeRegistry,
    commands: list[Command],
    blobs: Blobs,
    vectors: VectorIndex | None,
    memory_files: MemoryFolder | None,
) -> SessionServices:
    workspace = Workspace(settings.workspace_folder, clock)
    window = settings.context_tokens or model.profile.context_tokens
    builder = context_builder(settings.context_builder)
    agent = Agent(
        model=model,
        tools=ToolRegistry(),
        workspace=workspace,
        clock=clock,
        timezone=ZoneInfo(settings.timezone),
        timezone_name=settings.timezone,
        max_steps=settings.max_steps,
        context_tokens=window,
        builder=builder,
        images=blobs.get,
        recall_tokens=settings.recall_tokens,
        vectors=vectors,
        judge=judge,
    )
    # Messages outside the view must be in a summary, so both bounds shrink together.
    messages = -(-settings.memory_window // builder.budget_divisor)
    return SessionServices(
        bus=bus,
        store=store,
        agent=replace(agent, tools=ToolRegistry(builtin_tools(agent))),
        scopes=scopes,
        erase_residual_files=ResidualFiles(settings.home, bus, blobs).erase,
        commands=builtin_commands(commands),
        policy=ConsolidationPolicy(
            window=messages,
            tokens=(settings.memory_tokens or window // 2) // builder.budget_divisor,
            prompt_tokens=window * 3 // 5,
        ),
        exports=settings.home / "exports",
        archive=MemoryArchives(store, settings.home / "exports", ZoneInfo(settings.timezone)).write,
        retention_days=settings.retention_days,
        view_messages=messages * 2,
        view_tokens=(settings.view_tokens or window * 3 // 4) // builder.budget_divisor,
        portion_tokens=window // 3,
        archive_timeout=settings.archive_timeout,
        idle_seconds=settings.idle_seconds,
        group_context=settings.group_context,
        working_set_hours=settings.working_set_hours,
        memory_files=memory_files,
        poison_messages=PoisonMessages(settings.home),
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
