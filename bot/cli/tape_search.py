"""``tapebot tape search``: search messages in one session or in all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import anyio

from bot.cli.tape import printable, timeline_line
from bot.core.errors import TapeError, TapeLocked
from bot.core.i18n import _
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.control_socket import call_control
from bot.runtime.settings import Settings
from bot.tape.http_protocol import CALLS
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import TapeStore


def search_tapes(
    settings: Settings,
    words: Sequence[str],
    *,
    session: str | None,
    problem: str | None,
    limit: int,
) -> int:
    """Print the best matches first; return 1 if there are none."""
    tapes = None if session is None else (session,)
    query = SearchQuery(" ".join(words), tapes=tapes, problem=problem, limit=limit)
    hits = [hit for hit in anyio.run(_hits, settings, query) if hit.direct]
    zone = ZoneInfo(settings.timezone)
    for hit in hits:
        line = timeline_line(hit.entry, zone)
        sys.stdout.write(f"{printable(f'{hit.tape} {line}' if session is None else line)}\n")
    if not hits:
        print(_("Nothing found."), file=sys.stderr)
    return 0 if hits else 1


async def _hits(settings: Settings, query: SearchQuery) -> list[Hit]:
    """Ask the running bot, whose index is up to date; without one, search here."""
    query.validate()
    asked = {
        "do": "search",
        "words": query.text,
        "tapes": query.tapes,
        "problem": query.problem,
        "limit": query.limit,
    }
    # A bot on a database cannot be asked; this process has an index of its own.
    shared = settings.database_url is not None
    reply = None if shared else await call_control(settings.home, asked)
    if reply is not None:
        if not reply.get("ok"):
            raise TapeError(str(reply.get("text")))
        found: list[Hit] = CALLS[TapeStore.search].answers.validate_python(reply["hits"])
        return found
    try:
        async with open_tape_store(settings) as store:
            return await store.search(query)
    except TapeLocked:
        # The lock's holder is not a bot, but a tape server or another command.
        async with open_tape_store(settings, read_only=True) as store:
            return await store.search(query)
