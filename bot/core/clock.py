"""The clock as a dependency, so that tests control time; ISO 8601 parsing and formatting."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

import anyio

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Clock(Protocol):
    """Wall time, elapsed time and waiting."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start; never runs backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        await anyio.sleep(seconds)


def parse_time(text: object) -> datetime | None:
    """Parse ISO 8601 with a time zone; None if it is malformed or has no zone."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def to_milliseconds(moment: datetime) -> int:
    """Return the whole milliseconds since 1970."""
    return (moment - _EPOCH) // _MILLISECOND


def from_milliseconds(number: int) -> datetime:
    """Return the time so many milliseconds after 1970, in UTC.

    Raises:
        OverflowError: There is no such time.
    """
    return _EPOCH + number * _MILLISECOND


def format_time(moment: datetime) -> str:
    """Format as ISO 8601 in UTC with milliseconds, e.g. ``2026-02-10T10:00:00.000+00:00``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
