"""Health check and metrics of the database and leases, for ``bot.core.telemetry.monitoring``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.migrations import check_schema_version, load_migrations
from bot.core.telemetry.instruments import MetricSample
from bot.core.telemetry.metrics import LEASES_HELD, LEASES_LOST

_ONCE = 0.001
"""Retry seconds that allow a single attempt; 0 would mean no limit."""


def database_check(database: Database) -> Callable[[], Awaitable[str | None]]:
    """Return a health check: the database answers, and its schema is of this version.

    It raises the errors of ``bot.core.database.migrations.check_schema_version``.
    """
    known = len(load_migrations())
    agreed = False

    async def ask() -> str | None:
        nonlocal agreed
        # After one full comparison counting suffices: applied migrations never change.
        if agreed:
            # No retry: the check runs again anyway.
            [[done]] = await database.fetch(
                "select count(*) from tapebot.migration", retry_seconds=_ONCE
            )
            # A newer version migrates first, and adds only what this version can ignore.
            agreed = done >= known
        if not agreed:
            await check_schema_version(database)
            agreed = True
        return None

    return ask


def lease_samples(leases: Leases) -> Callable[[], Awaitable[list[MetricSample]]]:
    """Return a function that returns the metrics of a process's leases."""

    async def ask() -> list[MetricSample]:
        return [
            MetricSample(LEASES_HELD, len(leases.names)),
            MetricSample(LEASES_LOST, leases.lost),
        ]

    return ask
