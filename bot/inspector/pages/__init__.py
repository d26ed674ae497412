"""HTML pages, rendered on the server from the data that the API returns."""

from __future__ import annotations

from fastapi import APIRouter


def routers() -> list[APIRouter]:
    """Return the routers of all pages."""
    from bot.inspector.pages import (
        chat,
        login,
        memory,
        problems,
        reference,
        sessions,
        statistics,
        timeline,
        turns,
        zones,
    )

    parts = (
        login, chat, sessions, timeline, turns, memory, zones, problems, reference, statistics
    )  # fmt: skip
    return [part.router for part in parts]
