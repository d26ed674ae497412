"""What is measured and checked of a running program, and served to whoever operates it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from bot.core.telemetry.operations import Operations
from bot.runtime.app.build import App
from bot.runtime.settings import Role, Settings


@asynccontextmanager
async def open_operations(
    settings: Settings, app: App, role: Role
) -> AsyncIterator[Operations | None]:
    """Serve metrics and health where the settings say; None where they say nothing.

    Raises:
        SettingsError: It cannot be served there, or a part that it needs is missing.
    """
    if settings.operate_listen is None:
        yield None
        return
    operations = Operations(role)
    _add(app, operations)
    host, _, port = settings.operate_listen.rpartition(":")
    async with anyio.create_task_group() as tasks:
        await tasks.start(operations.run, host.strip("[]"), int(port))
        try:
            yield operations
        finally:
            tasks.cancel_scope.cancel()


def _add(app: App, operations: Operations) -> None:
    operations.sample("bus", app.bus.readings)
    operations.sample("sessions", app.supervisor.readings)
    if app.shared is not None:
        from bot.core.database.observed import lease_readings, usable

        operations.check("database", usable(app.shared.database))
        operations.sample("leases", lease_readings(app.shared.leases))
