"""Health check and metrics of the database and leases, for ``bot.core.telemetry.monitoring``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.schema import check_schema
from bot.core.telemetry.instruments import MetricSample
from bot.core.telemetry.metrics import LEASES_HELD, LEASES_LOST

_ONCE = 0.001
"""Retry seconds that allow a single attempt; 0 would mean no limit."""


def database_check(database: Database) -> Callable[[], Awaitable[str | None]]:
    """Return a health check: the database answers, and its schema is of this version.

    It raises the errors of ``bot.core.database.schema.check_schema``.
    """

    async def ask() -> str | None:
        # No retry: the check runs again anyway.
        await database.fetch("select 1", retry_seconds=_ONCE)
        await check_schema(database)
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
