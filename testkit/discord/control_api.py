"""HTTP control API of the Discord test server, for tests in another process.

``POST /control/say`` with a JSON object of arguments calls ``DiscordServer.say``; its result is
returned as ``{"result": ...}``. ``POST /control/faults.drop`` calls a method of the faults. ``GET
/control/books`` returns the records. Files are given as ``{"name", "mime", "base64"}``.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from aiohttp import web

from testkit.discord.faults import DiscordFaults
from testkit.discord.rate_limits import json_answer
from testkit.discord.records import DiscordUpload
from testkit.discord.user_actions import DiscordUserActions

_ACTIONS = frozenset(
    "user guild join enter channel direct thread archive deny block say edit unfurl delete react "
    "type raw slash autocomplete press shown until_messages until_connected".split()
)
_FAULTS = frozenset(
    "drop drop_shard reconnect invalidate mute_heartbeats refuse_gateway down flood limit_all "
    "real_limits sessions pace_sessions limit_once fail lose hang_up slow heal".split()
)


class DiscordControlApi:
    """Serves the control API."""

    def __init__(self, actions: DiscordUserActions, faults: DiscordFaults) -> None:
        self._actions, self._faults = actions, faults

    def register(self, router: web.UrlDispatcher) -> None:
        """Add the routes."""
        router.add_get("/control/books", self._books)
        router.add_post("/control/{action}", self._act)

    async def _books(self, _request: web.Request) -> web.Response:
        return json_answer(self._actions.records.to_json())

    async def _act(self, request: web.Request) -> web.Response:
        name = request.match_info["action"]
        raw = await request.read()
        try:
            result = await self._call(name, json.loads(raw) if raw else {})
        except (LookupError, ValueError, TypeError, TimeoutError) as error:
            return json_answer({"error": f"{type(error).__name__}: {error}"}, 400)
        return json_answer({"result": result})

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        target: Any = self._actions
        kind, _, fault = name.rpartition(".")
        if kind == "faults" and fault in _FAULTS:
            target, name = self._faults, fault
        elif name not in _ACTIONS:
            raise LookupError(f"no action {name}; see {sorted(_ACTIONS)}")
        if "attachments" in arguments:
            arguments["attachments"] = [_upload(each) for each in arguments["attachments"]]
        result = getattr(target, name)(**arguments)
        if name in {"autocomplete", "until_connected"}:
            return await result
        if name == "until_messages":
            return [{"id": each.id, "content": each.content} for each in await result]
        return result


def _upload(shape: dict[str, Any]) -> DiscordUpload:
    data = base64.b64decode(shape.get("base64", ""))
    mime = shape.get("mime", "application/octet-stream")
    return DiscordUpload(shape["name"], data, mime, shape.get("seconds"))
