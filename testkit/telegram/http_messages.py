"""Parse requests and write responses of the Telegram test server."""

from __future__ import annotations

import json
from dataclasses import dataclass

from aiohttp import web

from testkit.telegram.records import Json
from testkit.telegram.validation import bad

CLOSED = "the connection was broken"
_PAGE = "<html><head><title>{0}</title></head><body><h1>{0} Bad Gateway</h1></body></html>"


@dataclass(frozen=True, slots=True)
class BotApiResponse:
    """A response; status 0 breaks the connection."""

    status: int
    body: Json | str
    performed: bool = False

    @property
    def reason(self) -> str:
        """The error description, for the records."""
        if isinstance(self.body, str):
            return self.body[:60]
        return str(self.body.get("description", ""))


BROKEN = BotApiResponse(0, CLOSED)


def page(status: int) -> BotApiResponse:
    """Return a proxy's error page."""
    return BotApiResponse(status, _PAGE.format(status))


async def read(request: web.Request) -> Json:
    """Return the parameters from query and body; an upload is a pair of name and bytes."""
    values: Json = dict(request.query)
    if request.can_read_body and request.content_type == "application/json":
        try:
            body = await request.json()
        except ValueError as exc:
            refusal = bad("can't parse JSON object").as_json()
            raise web.HTTPBadRequest(text=json.dumps(refusal)) from exc
        values |= body if isinstance(body, dict) else {}
    elif request.can_read_body:
        for name, value in (await request.post()).items():
            values[name] = (
                (value.filename, value.file.read()) if isinstance(value, web.FileField) else value
            )
    for name, value in values.items():
        if isinstance(value, str) and value.startswith("attach://"):
            values[name] = values.get(value.removeprefix("attach://"), value)
    return values


def respond(request: web.Request, outcome: BotApiResponse) -> web.StreamResponse:
    """Send the response, or break the connection."""
    if outcome.status == 0:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    if isinstance(outcome.body, str):
        kind = "text/html" if outcome.status != 200 else "application/json"
        return web.Response(text=outcome.body, status=outcome.status, content_type=kind)
    return web.json_response(outcome.body, status=outcome.status)
