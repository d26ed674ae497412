"""The routes of OpenAI's API."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from bot.bus import (
    API_CHANNEL,
    Address,
    BusError,
    ClientMessage,
    ClientOutcome,
    InvalidInbound,
    MessageTooLong,
    PlainRequest,
    SessionFull,
    WebUser,
    nesting_levels,
)
from channels.api.channel import ApiChannel
from channels.api.errors import (
    InvalidRequest,
    error_json,
    failure_json,
    failure_response,
    invalid_response,
)
from channels.api.requests import ChatRequest, read_chat
from channels.api.responses import (
    PREFIX,
    ResponseWriter,
    place_of,
    read_response,
    response_id,
    unknown_response,
)
from channels.api.waiting import Placed
from channels.api.wire import COMMENT, CompletionWriter, SentText

_ALIVE_SECONDS = 15.0
"""Seconds between two signs of life in a stream."""
_LOOK_SECONDS = 2.0
"""Seconds between two looks whether a client is still there."""
_MOST_LEVELS = 150
"""Levels of a request's JSON: what is in it gets some more on the tape, which takes 200."""

_STREAM = "text/event-stream"


class Writer(Protocol):
    """Writes one answer in the format of a protocol."""

    def whole(self, outcome: ClientOutcome) -> dict[str, Any]:
        """Return the whole answer."""
        ...

    def begin(self) -> bytes:
        """Return the begin of a stream."""
        ...

    def text(self, text: str) -> bytes:
        """Return a piece of the text."""
        ...

    def end(self, outcome: ClientOutcome, sent: str) -> bytes:
        """Return the end of a stream, given the text that was sent."""
        ...

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the end of a stream that has no answer."""
        ...


MakeWriter = Callable[[Placed | None], Writer]
"""Return the writer of an answer, given where its request belongs, if it is on a tape."""


class ApiRoutes:
    """The handlers of the routes."""

    def __init__(self, channel: ApiChannel) -> None:
        self._channel = channel

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1")
        router.add_api_route("/models", self.models)
        router.add_api_route("/models/{name:path}", self.model)
        router.add_api_route("/chat/completions", self.chat, methods=["POST"])
        router.add_api_route("/responses", self.responses, methods=["POST"])
        return router

    async def models(self, request: Request) -> Response:
        """List the models."""
        user = await self._channel.backend.user(request)
        names = self._channel.backend.models(user)
        return JSONResponse({"object": "list", "data": [_model_json(name) for name in names]})

    async def model(self, request: Request, name: str) -> Response:
        """Return a model."""
        user = await self._channel.backend.user(request)
        try:
            return JSONResponse(_model_json(self._known(user, name)))
        except InvalidRequest as error:
            return invalid_response(error)

    async def chat(self, request: Request) -> Response:
        """Answer a request of chat completions."""
        user = await self._channel.backend.user(request)
        try:
            body = await read_json(request)
            read = partial(read_chat, body, repeated=is_repeated(request))
            asked = await anyio.to_thread.run_sync(read)

            def writer(_: Placed | None) -> CompletionWriter:
                made = f"chatcmpl-{secrets.token_hex(12)}"
                return CompletionWriter(made, asked.model, include_usage=asked.include_usage)

            return await self._answer(request, user, asked, writer)
        except InvalidRequest as error:
            return invalid_response(error)
        except (BusError, InvalidInbound) as error:
            return bus_response(error)

    async def responses(self, request: Request) -> Response:
        """Answer a request of the Responses API."""
        user = await self._channel.backend.user(request)
        try:
            body = await read_json(request)
            past = await self._past(user, body)
            read = partial(read_response, body, past, repeated=is_repeated(request))
            asked = await anyio.to_thread.run_sync(read)

            def writer(placed: Placed | None) -> ResponseWriter:
                named = f"{PREFIX}{secrets.token_hex(12)}"
                if placed is not None:
                    named = response_id(placed.session, placed.inbound)
                return ResponseWriter(asked.model, body, named)

            return await self._answer(request, user, asked, writer)
        except InvalidRequest as error:
            return invalid_response(error)
        except (BusError, InvalidInbound) as error:
            return bus_response(error)

    async def _past(self, user: WebUser, body: Any) -> tuple[ClientMessage, ...] | None:
        """Return the conversation that a request goes on with; None if it names none."""
        named = body.get("previous_response_id") if isinstance(body, dict) else None
        if named is None:
            return None
        topic, inbound = place_of(named, user.client)
        session = Address(API_CHANNEL, user.id, topic).session
        past = await self._channel.backend.past(session, inbound)
        if past is None:
            raise unknown_response()
        return past

    def _known(self, user: WebUser, name: str) -> str:
        if name not in self._channel.backend.models(user):
            text = f"there is no model {name[:80]!r}; GET /v1/models lists them"
            raise InvalidRequest(text, "model", status=404, code="model_not_found")
        return name

    async def _answer(
        self, request: Request, user: WebUser, asked: ChatRequest, writer: MakeWriter
    ) -> Response:
        self._known(user, asked.model)
        if asked.plain is not None:
            return await self._plain(user, asked, asked.plain, writer(None))
        if asked.stream:
            return StreamedResponse(self._channel, user, asked, partial(self._pieces, writer))
        return await self._whole(request, user, asked, writer)

    async def _plain(
        self, user: WebUser, asked: ChatRequest, plain: PlainRequest, writer: Writer
    ) -> Response:
        outcome = await self._channel.backend.complete(user, plain)
        if outcome.error is not None:
            return failure_response(outcome.error, limited=outcome.limited)
        if not asked.stream:
            return JSONResponse(writer.whole(outcome))
        text = writer.begin() + (writer.text(outcome.text) if outcome.text else b"")
        text += writer.end(outcome, outcome.text)
        return Response(text, media_type=_STREAM)

    async def _whole(
        self, request: Request, user: WebUser, asked: ChatRequest, writer: MakeWriter
    ) -> Response:
        async with self._channel.placed(user, asked) as placed:
            found = await self._wait(request, placed)
            if found is None:
                return Response(status_code=499)
            answer, outcome = found

        async def report(delivered: bool) -> None:
            await self._channel.report(placed, answer, delivered=delivered)

        if outcome.error is not None:
            failed = failure_json(outcome.error, limited=outcome.limited)
            headers = {"x-should-retry": "false"}
            status = 429 if outcome.limited else 502
            return ReportedResponse(request, report, failed, status, headers)
        return ReportedResponse(request, report, writer(placed).whole(outcome))

    async def _wait(self, request: Request, placed: Placed) -> tuple[str, ClientOutcome] | None:
        """Return the id of the answer, and it; None if the client is gone."""
        while placed.answer is None and placed.waiting.answer is None:
            if await request.is_disconnected():
                return None
            if not await placed.waiting.changed(_LOOK_SECONDS):
                await self._channel.look_again(placed)
        return await self._channel.outcome(placed)

    async def _pieces(
        self, writer: MakeWriter, placed: Placed, _: ChatRequest
    ) -> AsyncIterator[bytes]:
        written, text = writer(placed), SentText()
        yield written.begin()
        while placed.answer is None and placed.waiting.answer is None:
            if piece := text.next(placed.waiting.partial):
                yield written.text(piece)
            if not await placed.waiting.changed(_ALIVE_SECONDS):
                await self._channel.look_again(placed)
                yield COMMENT
        answer, outcome = await self._channel.outcome(placed)
        delivered = False
        try:
            if outcome.error is not None:
                failed = failure_json(outcome.error, limited=outcome.limited)
                yield written.failed(failed["error"])
            else:
                if piece := text.next(outcome.text):
                    yield written.text(piece)
                yield written.end(outcome, text.sent)
            delivered = True
        finally:
            with anyio.CancelScope(shield=True):
                await self._channel.report(placed, answer, delivered=delivered)


class StreamedResponse(Response):
    """A stream; its request's message is durable before its first byte."""

    def __init__(
        self,
        channel: ApiChannel,
        user: WebUser,
        asked: ChatRequest,
        pieces: Callable[[Placed, ChatRequest], AsyncIterator[bytes]],
    ) -> None:
        super().__init__()
        self._channel = channel
        self._user = user
        self._asked = asked
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Place the request, and send its answer as it grows."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        refused: Response | None = None
        try:
            async with self._channel.placed(self._user, self._asked) as placed:
                pieces = self._pieces(placed, self._asked)
                response = StreamingResponse(pieces, media_type=_STREAM, headers=headers)
                await response(scope, receive, send)
        except InvalidRequest as error:
            refused = invalid_response(error)
        except (BusError, InvalidInbound) as error:
            refused = bus_response(error)
        if refused is not None:
            await refused(scope, receive, send)


class ReportedResponse(JSONResponse):
    """A response whose delivery is reported."""

    def __init__(
        self,
        request: Request,
        report: Callable[[bool], Any],
        content: dict[str, Any],
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(content, status, headers)
        self._request = request
        self._report = report

    def render(self, content: Any) -> bytes:
        """Return the body in ASCII, since a text may hold anything."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and report."""
        delivered = False
        try:
            there = not await self._request.is_disconnected()
            await super().__call__(scope, receive, send)
            delivered = there
        finally:
            with anyio.CancelScope(shield=True):
                await self._report(delivered)


async def read_json(request: Request) -> Any:
    """Return the body of a request.

    Raises:
        InvalidRequest: It is no JSON, or nested more deeply than a tape could record.
    """
    raw = await request.body()
    try:
        body = await anyio.to_thread.run_sync(json.loads, raw)
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is no JSON") from None
    if raw.count(b"{") + raw.count(b"[") > _MOST_LEVELS and nesting_levels(body) > _MOST_LEVELS:
        raise InvalidRequest(f"the body is nested deeper than {_MOST_LEVELS} levels")
    return body


def is_repeated(request: Request) -> bool:
    """Return whether a client says that it sends a request again, as OpenAI's libraries do."""
    return request.headers.get("x-stainless-retry-count", "0") not in ("", "0")


def bus_response(error: Exception) -> Response:
    """Return the response to a request whose message was not accepted."""
    if isinstance(error, MessageTooLong):
        return JSONResponse(error_json(str(error), "invalid_request_error"), 413)
    if isinstance(error, SessionFull):
        return JSONResponse(error_json(str(error), "rate_limit_error"), 429)
    status = 400 if isinstance(error, InvalidInbound) else 503
    return JSONResponse(error_json(str(error), "server_error"), status)


def _model_json(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tapebot"}
