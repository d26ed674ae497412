"""HTTP control API of the Telegram test server, for tests in another process.

``POST /control/<act>`` with a JSON object of the arguments answers ``{"ok": true, "result": …}``,
or 400 with ``error``. Actions are the methods of ``TelegramUserActions`` (chats, users and bots by
id, bytes in base64) and of ``TelegramFaults`` (also as ``faults.flood`` …), and: ``fault`` (the
fields of ``BotApiFault``), ``missing`` (``method``, ``missing``), ``down``, ``up``,
``until_messages`` (``chat``, ``count``, ``within``), ``until_confirmed`` and ``until_changed``
(``within``), ``whoami``. ``GET /control/books`` returns all records.
"""

from __future__ import annotations

import base64
import binascii
import inspect
from dataclasses import asdict, is_dataclass
from typing import Any, Protocol

from aiohttp import web

from testkit.telegram.faults import BotApiFault, TelegramFaults
from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.records import Json, TelegramRecords, UpdateDelivery
from testkit.telegram.world import TelegramChat, TelegramUser, TelegramWorld

_ACTS = frozenset(
    "bot user private group topic say post edit remove photo voice audio sticker document album location "
    "press react join kick block migrate drop_topic raw revoke down up until_messages until_confirmed "
    "until_changed".split()
)
_FAULTS = frozenset(
    "flood calm clear flood_once refuse html hang_up lose_answer garbage odd endless slow refuse_entities "
    "forbid".split()
)


class Controlled(Protocol):
    """What the control API needs of a server, whose acts it calls by name."""

    token: str
    me: TelegramUser
    faults: TelegramFaults
    missing: set[str]
    world: TelegramWorld
    records: TelegramRecords

    @property
    def url(self) -> str:
        """Its address."""


def add_routes(app: web.Application, server: Controlled) -> None:
    """Add the routes of the control API."""

    async def read(_request: web.Request) -> web.Response:
        return web.json_response(server.records.as_json())

    async def act(request: web.Request) -> web.Response:
        try:
            values = await request.json() if request.can_read_body else {}
            result = _act(server, request.match_info["act"], _arguments(server, values))
            if inspect.isawaitable(result):
                result = await result
        except (ValueError, KeyError, TypeError, AssertionError, TimeoutError) as exc:
            error = f"{type(exc).__name__}: {exc}"
            return web.json_response({"ok": False, "error": error}, status=400)
        return web.json_response({"ok": True, "result": _plain(result)})

    app.router.add_get("/control/books", read)
    app.router.add_post("/control/{act}", act)


def _act(server: Controlled, name: str, values: Json) -> Any:
    name = name.removeprefix("faults.")
    match name:
        case "whoami":
            return {"url": server.url, "token": server.token, "bot": server.me.as_json()}
        case "fault":
            return server.faults.add(BotApiFault(**values))
        case "missing":
            change = server.missing.add if values.get("missing", True) else server.missing.discard
            return change(values["method"])
        case _ if name in _FAULTS:
            return getattr(server.faults, name)(**values)
        case _ if name in _ACTS:
            return getattr(server, name)(**values)
        case _:
            raise ValueError(f"no act {name!r}; there are {sorted(_ACTS | _FAULTS)}")


def _arguments(server: Controlled, values: Json) -> Json:
    """Convert JSON arguments to what the methods take: bytes, media and bot accounts."""
    given = dict(values)
    if isinstance(given.get("data"), str) and "message" not in given:
        given["data"] = _decoded(given["data"])
    if isinstance(given.get("items"), list):
        given["items"] = [
            TelegramMedia(**{**one, "data": _decoded(one["data"])} if "data" in one else one)
            for one in given["items"]
        ]
    if isinstance(given.get("bot"), int):
        given["bot"] = server.world.bot_by_id(given["bot"]).user
    if isinstance(given.get("bots"), list):
        given["bots"] = [server.world.bot_by_id(one).user for one in given["bots"]]
    return given


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as exc:
        raise ValueError("data has to be base64") from exc


def _plain(result: Any) -> Any:
    """Convert a result to JSON values."""
    if isinstance(result, TelegramUser | TelegramChat):
        return result.as_json()
    if isinstance(result, BotApiFault):
        return None
    if isinstance(result, list):
        return [_plain(one) for one in result]
    if isinstance(result, UpdateDelivery):
        return result.id
    return asdict(result) if is_dataclass(result) and not isinstance(result, type) else result
