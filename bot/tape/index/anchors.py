"""Anchors, as the index has them. Blocking."""

from __future__ import annotations

import json

from bot.tape.index.database import Database
from bot.tape.index.writing import TapeRows, plain
from bot.tape.store import Anchor


def anchors_of(database: Database, rows: TapeRows) -> list[Anchor]:
    """Return all anchors of a tape, oldest first."""
    with database.reader() as connection:
        found = connection.execute(
            "SELECT name, at, entry, state, ts FROM anchors WHERE tape = ? ORDER BY at", (rows.id,)
        ).fetchall()
    return [
        Anchor(rows.name, plain(name), at, entry, json.loads(state), plain(ts))
        for name, at, entry, state, ts in found
    ]
