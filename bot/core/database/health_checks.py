"""The database and its leases as health checks and metrics; see ``bot.core.telemetry.monitoring``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.migrations import check_schema_version, load_migrations
from bot.core.telemetry.instruments import MetricSample
from bot.core.telemetry.metrics import LEASES_HELD, LEASES_LOST

_ONCE = 0.001
"""Seconds of patience in which nothing is tried twice; none at all would be without end."""


def database_check(database: Database) -> Callable[[], Awaitable[str | None]]:
    """Return a check: the database answers now, and is of this version.

    It raises what ``bot.core.database.migrations.check`` does.
    """
    known = len(load_migrations())
    agreed = False

    async def ask() -> str | None:
        nonlocal agreed
        # What was compared once need only be counted: a step that was run is not changed.
        if agreed:
            # Once: whoever wants to know asks again.
            [[done]] = await database.fetch(
                "select count(*) from tapebot.migration", patience=_ONCE
            )
            # A newer version migrates first, and adds only what this one can ignore.
            agreed = done >= known
        if not agreed:
            await check_schema_version(database)
            agreed = True
        return None

    return ask


def lease_samples(leases: Leases) -> Callable[[], Awaitable[list[MetricSample]]]:
    """Return what asks for the metrics of a process's leases."""

    async def ask() -> list[MetricSample]:
        return [
            MetricSample(LEASES_HELD, len(leases.names)),
            MetricSample(LEASES_LOST, leases.lost),
        ]

    return ask
