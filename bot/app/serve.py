"""Runs the program: sessions, channels and the control socket, until the end or a signal."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from bot.app.build import App, open_app
from bot.app.channels import Announce, at_terminal, build_channels, run_channels
from bot.bus import Address, Answer
from bot.control import serve_control
from bot.errors import ChannelRefused, ModelError, TapeError
from bot.ids import new_id
from bot.llm.retry import Warmable
from bot.settings import Settings
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore
from bot.tape.wire import hit_record

logger = logging.getLogger(__name__)

_CONSOLE = Address("console", "local")

_LONGEST_TEXT = 1_900
"""Characters of a text in an answer to ``tapebot tape search``."""

_LARGEST_ANSWER = 900_000
"""Bytes of such an answer: what the control socket carries."""


async def serve(settings: Settings) -> None:
    """Run tapebot until its console ends or a signal asks it to stop.

    A turn that runs when a signal comes stays open on its tape, and is taken up at the next start.
    Channels end first, so that the receipts of what they have shown still reach the tapes.

    Raises:
        ChannelRefused: No platform lets the bot in, and there is no console.
    """
    refused: ChannelRefused | None = None
    async with open_app(settings) as app, anyio.create_task_group() as tasks:
        announce = _announcer(app)
        channels = build_channels(app, announce)
        platforms = [channel for channel in channels if channel.name != _CONSOLE.channel]
        tasks.start_soon(app.supervisor.run)
        tasks.start_soon(app.store.run)
        if app.vectors is not None:
            tasks.start_soon(app.vectors.run)
        handlers = {"pair": app.door.handle, "search": partial(_search, app.store)}
        await tasks.start(serve_control, settings.home, handlers)
        if isinstance(app.model, Warmable):
            tasks.start_soon(_warm, app.model)
        for name in sorted({channel.name.partition("-")[0] for channel in platforms}):
            if (code := app.door.claim_code_for(name)) is not None:
                announce(
                    f"{name.capitalize()}: nobody there owns this bot yet. To own it, send it in a "
                    f"private chat: /claim {code}"
                )
        with anyio.CancelScope() as stopping:
            tasks.start_soon(_stop_on_signal, stopping)
            try:
                await run_channels(app, channels, announce)
            except ChannelRefused as error:
                refused = error
        tasks.cancel_scope.cancel()
    if refused is not None:
        raise refused


async def _search(store: TapeStore, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ``tapebot tape search``."""
    tapes, limit, problem = (request.get(name) for name in ("tapes", "limit", "problem"))
    query = SearchQuery(
        str(request.get("words", "")),
        tapes=tuple(map(str, tapes)) if isinstance(tapes, list) else None,
        limit=limit if type(limit) is int else 10,
        problem=problem if isinstance(problem, str) else None,
    )
    hits = [hit_record(replace(hit, entry=_shown(hit.entry))) for hit in await store.search(query)]
    if len(json.dumps(hits)) > _LARGEST_ANSWER:
        raise TapeError(f"{len(hits)} hits are too much for one answer; ask for fewer of them")
    return {"ok": True, "hits": hits}


def _shown(entry: TapeEntry) -> TapeEntry:
    """Return as much of an entry as a line of an answer shows."""
    meta = {key: value for key, value in entry.meta.items() if key != "attachments"}
    return replace(entry, payload=_cut(entry.payload), meta=_cut(meta))


def _cut(value: Any) -> Any:
    """Return a JSON value whose texts are not long."""
    if isinstance(value, str):
        more = len(value) - _LONGEST_TEXT
        return f"{value[:_LONGEST_TEXT]} … ({more} more characters)" if more > 0 else value
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return [_cut(one) for one in value] if isinstance(value, list) else value


def _announcer(app: App) -> Announce:
    """Return what tells whoever runs the program, each in one line."""
    if not at_terminal():
        return lambda text: print(_clean(text), flush=True)  # noqa: T201 (what it is run for)
    return lambda text: app.bus.show(Answer(_CONSOLE, new_id("notice"), _clean(text)))


def _clean(text: str) -> str:
    """Return one line without signs that steer a terminal: names in it are other people's."""
    return "".join(char if char.isprintable() else " " for char in text)


async def _warm(model: Warmable) -> None:
    try:
        await model.warm()
    except ModelError as error:
        # The chat goes on: the first turn says the same, and fallbacks are tried.
        logger.warning("the model cannot be used: %s", error)


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    """Cancel the channels when asked to stop."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            logger.info("stopping on %s", received.name)
            scope.cancel()


def run(settings: Settings) -> None:
    """Run ``serve`` to its end in a new event loop."""
    anyio.run(serve, settings)
