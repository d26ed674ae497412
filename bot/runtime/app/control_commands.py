"""Handlers of the control socket: pairing, tape search, tape reset and web logins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from bot.core.errors import TapeError
from bot.core.i18n import _, ngettext
from bot.runtime.app.build import App
from bot.runtime.app.person_erasure import answer
from bot.runtime.control_socket import Handler
from bot.runtime.sessions.session_reset import reset_session
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore

_LONGEST_TEXT = 1_900
"""Characters of one text in an answer to ``tapebot tape search``."""

_LARGEST_ANSWER = 900_000
"""Bytes of such an answer, below the control socket's limit."""


def control_handlers(app: App) -> Mapping[str, Handler]:
    """Return the handlers, by the request's ``do``."""
    return {
        "pair": app.access_control.handle,
        "search": partial(_search, app.store),
        "reset": partial(_reset, app),
        "memory": app.memory_requests.run,
        "channels": partial(_channels, app),
        "erase": partial(answer, app),
        **app.web.handlers(),
    }


async def _channels(app: App, _request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ``tapebot doctor``, which asks what channels have no connection."""
    return {"ok": True, "problems": list(app.services.problems.values())}


async def _reset(app: App, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ``tapebot tape reset``."""
    version = request.get("version")
    await reset_session(
        app.store,
        str(request.get("session", "")),
        app.services.scopes,
        expect=version if type(version) is int else 0,
        archive=request.get("archive") is True,
        vectors=app.vectors,
        files=app.extensions.files.mirror,
    )
    return {"ok": True, "text": "done"}


async def _search(store: TapeStore, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ``tapebot tape search``."""
    tapes, limit, problem = (request.get(name) for name in ("tapes", "limit", "problem"))
    query = SearchQuery(
        str(request.get("words", "")),
        tapes=tuple(map(str, tapes)) if isinstance(tapes, list) else None,
        limit=limit if type(limit) is int else 10,
        problem=problem if isinstance(problem, str) else None,
    )
    hits = [asdict(replace(hit, entry=_shown(hit.entry))) for hit in await store.search(query)]
    if len(json.dumps(hits)) > _LARGEST_ANSWER:
        raise TapeError(
            _("{number} hits are too many for one answer; ask for fewer", number=len(hits))
        )
    return {"ok": True, "hits": hits}


def _shown(entry: TapeEntry) -> TapeEntry:
    """Return an entry without attachments and with long texts cut."""
    meta = {key: value for key, value in entry.meta.items() if key != "attachments"}
    return replace(entry, payload=_cut(entry.payload), meta=_cut(meta))


def _cut(value: Any) -> Any:
    """Return a JSON value with its long texts cut."""
    if isinstance(value, str):
        more = len(value) - _LONGEST_TEXT
        if more <= 0:
            return value
        return ngettext(
            "{text} … ({n} more character)",
            "{text} … ({n} more characters)",
            more,
            text=value[:_LONGEST_TEXT],
        )
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    return [_cut(one) for one in value] if isinstance(value, list) else value
