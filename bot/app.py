"""The composition root: builds the parts from the settings, runs them, and takes them down."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from bot.agent.agent import Agent
from bot.agent.workspace import Workspace
from bot.bus.local import LocalBus
from bot.clock import Clock, SystemClock
from bot.commands.builtin import builtin_commands
from bot.consolidation.policy import Policy
from bot.errors import ModelError, SettingsError
from bot.files import private_directory
from bot.llm.base import Model
from bot.llm.registry import build_model
from bot.llm.retry import Warmable
from bot.sessions.services import SessionServices
from bot.sessions.supervisor import Supervisor
from bot.settings import Settings
from bot.tape.stores.file import FileTapeStore
from bot.tools.memory import MEMORY_TOOLS
from bot.tools.registry import ToolRegistry
from bot.tools.skills import skill_tool
from channels import registry
from channels.base import Channel

logger = logging.getLogger(__name__)

_FAREWELL = 10.0
"""Seconds that answers on their way have when the program ends by itself."""


@dataclass(frozen=True, slots=True)
class App:
    """A program that is set up.

    Attributes:
        settings: What it was built from.
        bus: Carries messages.
        store: Holds tapes.
        model: Answers.
        services: What sessions share.
        supervisor: Runs them.
    """

    settings: Settings
    bus: LocalBus
    store: FileTapeStore
    model: Model
    services: SessionServices
    supervisor: Supervisor


@asynccontextmanager
async def open_app(settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Build everything; close it again at the end.

    Raises:
        TapeLocked: Another tapebot runs in this home folder.
        ModelUnavailable: The configured model cannot be used here.
    """
    clock = clock or SystemClock()
    home = _home(settings)
    durable = settings.tape_sync == "always"
    store = FileTapeStore(
        home / "tapes",
        workspace=settings.workspace_id or "",
        sync=durable,
        open_tapes=settings.open_tapes,
        clock=clock,
    )
    try:
        bus = LocalBus(
            home / "bus", session_limit=settings.session_limit, sync=durable, clock=clock
        )
        model = make_model(settings)
        services = _services(settings, clock, bus, store, model)
        logger.info("started with %s in %s", model.name, home)
        try:
            yield App(settings, bus, store, model, services, Supervisor(services))
        finally:
            with anyio.CancelScope(shield=True):
                await bus.aclose()
                await model.aclose()
    finally:
        await store.close()


async def serve(settings: Settings) -> None:
    """Run tapebot until its channel ends or a signal asks it to stop.

    A turn that runs when a signal comes stays open on its tape, and is taken up at the next start.
    """
    async with open_app(settings) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        tasks.start_soon(app.supervisor.run)
        if isinstance(app.model, Warmable):
            tasks.start_soon(_warm, app.model)
        channel = _console(app)
        await channel.run(app.bus.channel(channel.name))
        with anyio.move_on_after(_FAREWELL):
            await app.bus.drain()
        tasks.cancel_scope.cancel()


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


def _services(
    settings: Settings, clock: Clock, bus: LocalBus, store: FileTapeStore, model: Model
) -> SessionServices:
    workspace = Workspace(settings.workspace_folder, clock)
    window = settings.context_tokens or model.profile.context_tokens
    agent = Agent(
        model=model,
        tools=ToolRegistry([*MEMORY_TOOLS, skill_tool(workspace.skill)]),
        workspace=workspace,
        clock=clock,
        timezone=ZoneInfo(settings.timezone),
        timezone_name=settings.timezone,
        max_steps=settings.max_steps,
        context_tokens=window,
    )
    return SessionServices(
        bus=bus,
        store=store,
        agent=agent,
        commands=builtin_commands(),
        policy=Policy(
            window=settings.memory_window,
            tokens=settings.memory_tokens or window // 2,
            prompt_tokens=window * 3 // 5,
        ),
        exports=settings.home / "exports",
        retention_days=settings.retention_days,
        view_messages=settings.memory_window * 2,
        view_tokens=settings.view_tokens or window * 3 // 4,
        portion_tokens=window // 3,
        archive_timeout=settings.archive_timeout,
        idle_seconds=settings.idle_seconds,
    )


def _console(app: App) -> Channel:
    name = (
        "offline responder (no language model)" if app.model.name == "offline" else app.model.name
    )
    banner = (
        f"tapebot, {name}. Everything said is kept in {app.settings.home}.\n"
        "Type a message, or /help. Ctrl-D leaves."
    )
    return registry.console(
        history_file=app.settings.home / "console" / "history",
        user_name=app.settings.console_name,
        commands=app.services.commands.listed(),
        banner=banner,
    )


async def _warm(model: Warmable) -> None:
    try:
        await model.warm()
    except ModelError as error:
        # The chat goes on: the first turn says the same, and fallbacks are tried.
        logger.warning("the model cannot be used: %s", error)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            logger.info("stopping on %s", received.name)
            scope.cancel()


def run(settings: Settings) -> None:
    """Run ``serve`` to its end in a new event loop."""
    anyio.run(serve, settings)
