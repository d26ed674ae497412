"""The documented JSON API; the pages show the same data."""

from __future__ import annotations

from fastapi import APIRouter

API = "/api/v1"


def routers() -> list[APIRouter]:
    """Return the routers of the API."""
    from bot.inspector.api import (
        beliefs,
        commands,
        entries,
        facts,
        follow,
        memory,
        problems,
        quarantine,
        reference,
        sessions,
        statistics,
        turns,
        zones,
    )

    parts = (
        sessions, entries, follow, turns, memory, facts, quarantine, beliefs, zones, problems, reference,
        statistics, commands
    )  # fmt: skip
    return [part.router for part in parts]
