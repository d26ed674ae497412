"""Run the program: sessions, channels, control socket and monitoring, until it ends."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bot.bus import Address, Answer
from bot.core.errors import BusError, ModelError, SettingsError, TapebotError
from bot.core.i18n import _
from bot.core.ids import new_id
from bot.core.installation import this_installation
from bot.core.telemetry.monitoring import MonitoringServer
from bot.core.telemetry.otlp import export_traces
from bot.core.telemetry.watchdog import Watchdog
from bot.llm.retry import Warmable
from bot.runtime.app.build import App, open_app
from bot.runtime.app.channels import (
    CONSOLE_LEASE,
    at_terminal,
    configured_channels,
    run_channels,
)
from bot.runtime.app.control_commands import control_handlers
from bot.runtime.app.remote_erasures import RemoteErasures
from bot.runtime.app.scheduler import LEASE, Scheduler
from bot.runtime.app.site import Announce
from bot.runtime.control_socket import serve_control
from bot.runtime.settings import ProcessRole, Settings

logger = logging.getLogger(__name__)

CONSOLE = Address("console", "local")

_SHUTDOWN_SECONDS = 20.0
"""Seconds that a worker process's turns have to end when it is asked to stop."""


async def serve(settings: Settings, role: ProcessRole = "both") -> None:
    """Run tapebot until its console ends or a signal stops it.

    A running turn stays open on its tape, and is resumed at the next start or by another process.
    Channels end before the bus does, so that their delivery reports still reach the tapes.

    Raises:
        ChannelRefused: No platform lets the bot in, and there is no console.
        SettingsError: A single role has no database, or a gateway has no platform.
    """
    if role != "both" and settings.database_url is None:
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: not set, but a separate {role} needs it; allowed: postgresql://user:password@host:port/name",
                role=role,
            )
        )
    watchdog = Watchdog(settings.home)
    try:
        async with (
            export_traces(role),
            open_app(settings) as app,
            watchdog.watch(),
            open_monitoring(settings, app, role) as monitoring,
            _background_services(app, monitoring),
        ):
            await _run(app, role, monitoring, watchdog)
    except BaseExceptionGroup as group:
        if (error := _only_error(group)) is None:
            raise
        # Callers show a TapebotError to people: unwrap it from nested task groups.
        raise error from error.__cause__


def _only_error(group: BaseExceptionGroup) -> TapebotError | None:
    """Return the one TapebotError in nested exception groups; None for anything else."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, TapebotError) else None


@asynccontextmanager
async def _background_services(
    app: App, monitoring: MonitoringServer | None
) -> AsyncIterator[None]:
    """Run the bus and the database services; they end after everything that uses them."""
    async with anyio.create_task_group() as tasks:
        if app.database_services is not None:
            _watch(tasks, monitoring, "wake-ups", app.database_services.wakeups.run)
            _watch(tasks, monitoring, "leases", app.database_services.leases.run)
        _watch(tasks, monitoring, "bus", app.bus.run)
        tasks.start_soon(app.spending.run)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _run(
    app: App, role: ProcessRole, monitoring: MonitoringServer | None, watchdog: Watchdog
) -> None:
    async with anyio.create_task_group() as tasks:
        announce = _announcer(app, role, tasks)
        channels = (
            [] if role == "worker" else configured_channels(app, announce, console=role == "both")
        )
        tasks.start_soon(app.store.run)
        if role != "gateway":
            _start_sessions(app, tasks, monitoring)
        if app.database_services is None:
            await tasks.start(serve_control, app.settings.home, control_handlers(app))
        with anyio.CancelScope() as stopping:
            # Handle signals before announcing readiness: a supervisor may stop us at once.
            await tasks.start(_stop_on_signal, stopping, monitoring, watchdog)
            if monitoring is not None and not stopping.cancel_called:
                monitoring.set_unready(None)
            if role == "worker":
                app.extensions.plugins.announce_problems(announce)
                announce(_("worker: ready"))
                await anyio.sleep_forever()
            await run_channels(app, channels, announce)
        if role == "worker":
            await app.supervisor.drain(_SHUTDOWN_SECONDS)
        tasks.cancel_scope.cancel()


def _start_sessions(app: App, tasks: TaskGroup, monitoring: MonitoringServer | None) -> None:
    """Start the supervisor and the background tasks that follow the tapes."""
    _watch(tasks, monitoring, "sessions", app.supervisor.run)
    _watch(tasks, monitoring, "schedules", partial(_run_scheduler, app))
    if (elsewhere := make_remote_erasures(app)) is not None:
        _watch(tasks, monitoring, "erasures", elsewhere.run)
    if app.vectors is not None:
        tasks.start_soon(app.vectors.run)
    if app.extensions.files.mirror is not None:
        tasks.start_soon(app.extensions.files.mirror.show_missing, app.store)
    if app.extensions.mcp is not None:
        tasks.start_soon(app.extensions.mcp.run)
    _start_backups(app, tasks)
    if isinstance(app.model, Warmable):
        tasks.start_soon(_warm, app.model)


def _start_backups(app: App, tasks: TaskGroup) -> None:
    """Start the daily backups, if there is a folder for them.

    Raises:
        SettingsError: They are configured in a way that cannot work.
    """
    if app.settings.backup_to is not None:
        try:
            from bot.runtime.app.daily_backup import DailyBackup, check_in_files, configured_key
        except ImportError as error:
            raise SettingsError(
                _("TAPEBOT_BACKUP_TO: needs {name}: pip install 'tapebot[backup]'", name=error.name)
            ) from error
        check_in_files(app.settings)
        if configured_key(app.settings) is None:
            raise SettingsError(
                _("TAPEBOT_BACKUP_TO: needs TAPEBOT_BACKUP_PASSPHRASE or TAPEBOT_BACKUP_RECIPIENTS")
            )
        clock = app.services.agent.clock
        tasks.start_soon(DailyBackup(app.settings, app.settings.backup_to, clock).run)


async def _run_scheduler(app: App) -> None:
    """Run the scheduler; in a fleet whenever this process holds its lease."""
    scheduler = Scheduler(app.store, app.bus, app.services.agent.clock)
    if app.database_services is None:
        await scheduler.run()
        return

    async def run_under_lease(_: int) -> None:
        await scheduler.run()

    while not await app.database_services.leases.hold(LEASE, run_under_lease):
        pass


def make_remote_erasures(app: App) -> RemoteErasures | None:
    """Return the follower of other processes' erasures; None without a database."""
    if app.database_services is None:
        return None
    from bot.tape.stores.postgres import PostgresTapeStore

    assert isinstance(app.store, PostgresTapeStore)
    scopes = app.services.scopes
    return RemoteErasures(app.store.erased, app.database_services.wakeups, scopes, app.vectors)


def _watch(
    tasks: TaskGroup,
    monitoring: MonitoringServer | None,
    name: str,
    job: Callable[[], Coroutine[Any, Any, object]],
) -> None:
    """Start a task that the process cannot do without."""
    if monitoring is None:
        tasks.start_soon(job)
    else:
        tasks.start_soon(monitoring.run_critical, name, job)


def _announcer(app: App, role: ProcessRole, tasks: TaskGroup) -> Announce:
    """Return the function that tells the operator one line of text."""
    if role != "both" or not at_terminal():
        return _print
    send, receive = anyio.create_memory_object_stream[str](100)

    async def tell() -> None:
        async for text in receive:
            if not _shows_console(app):
                _print(text)
                continue
            try:
                await app.bus.send(Answer(CONSOLE, new_id("notice"), text))
            except BusError as error:
                logger.warning("not shown at the console (%s): %s", error, text)

    tasks.start_soon(tell)
    return lambda text: send.send_nowait(_clean(text))


def _shows_console(app: App) -> bool:
    """Return whether this process shows the console, not another that holds its lease."""
    return app.database_services is None or CONSOLE_LEASE in app.database_services.leases.names


def _print(text: str) -> None:
    print(_clean(text), flush=True)  # noqa: T201 (what it is run for)


def _clean(text: str) -> str:
    """Return one line without control characters: names in it come from strangers."""
    fitting = this_installation().adapt(text)
    return "".join(char if char.isprintable() else " " for char in fitting)


async def _warm(model: Warmable) -> None:
    try:
        await model.warm()
    except ModelError as error:
        # Go on: the first turn reports the same error, and tries the fallbacks.
        logger.warning("the model cannot be used: %s", error)


async def _stop_on_signal(
    scope: anyio.CancelScope,
    monitoring: MonitoringServer | None,
    watchdog: Watchdog,
    *,
    task_status: TaskStatus[None],
) -> None:
    """Cancel the channels on SIGINT or SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        watchdog.handle_signals(signal.SIGINT, signal.SIGTERM)
        task_status.started()
        async for received in signals:
            logger.info("stopping on %s", received.name)
            if monitoring is not None:
                monitoring.set_unready("it is stopping")  # for programs
            scope.cancel()


def run(settings: Settings, role: ProcessRole = "both") -> None:
    """Run ``serve`` to its end in a new event loop."""
    anyio.run(serve, settings, role)


@asynccontextmanager
async def open_monitoring(
    settings: Settings, app: App, role: ProcessRole
) -> AsyncIterator[MonitoringServer | None]:
    """Serve metrics and health at the configured address; None if none is set.

    Raises:
        SettingsError: The address cannot be used, or a package is missing.
    """
    if settings.operate_listen is None:
        yield None
        return
    monitoring = MonitoringServer(role)
    _add_checks(app, monitoring)
    async with anyio.create_task_group() as tasks:
        await tasks.start(monitoring.run, settings.operate_listen)
        try:
            yield monitoring
        finally:
            tasks.cancel_scope.cancel()


def _add_checks(app: App, monitoring: MonitoringServer) -> None:
    monitoring.sample("bus", app.bus.metric_samples)
    monitoring.sample("sessions", app.supervisor.metric_samples)
    if app.database_services is not None:
        from bot.core.database.health_checks import database_check, lease_samples

        monitoring.check("database", database_check(app.database_services.database))
        monitoring.sample("leases", lease_samples(app.database_services.leases))
