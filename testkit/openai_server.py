"""A scripted server for OpenAI's chat completions and embeddings on a real socket.

A script is a sequence of steps, one for each request, or a function from the request's JSON to a
step. Embeddings need no script: they count words, so that texts with common words are similar.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
from aiohttp import web

from testkit.loopback import LoopbackServer, Routes, Signal, hang_up

DIMENSIONS = 384
"""Dimensions of the embeddings."""
_JUDGE = "judge_claims"  # the tool that takes a judge's answer


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the scripted model makes."""

    name: str
    arguments: str | dict[str, Any]
    id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    content: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int = 12
    cached_tokens: int = 0
    completion_tokens: int = 5
    counted: bool = True
    piece: int = 4
    gate: anyio.Event | None = None
    hang_up: bool = False

    @property
    def ending(self) -> str:
        if self.finish_reason is not None:
            return self.finish_reason
        return "tool_calls" if self.calls else "stop"


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error."""

    status: int
    message: str = "scripted failure"
    code: str | None = None
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The connection breaks before the first byte of the answer."""


@dataclass(frozen=True, slots=True)
class NoChoices:
    """An answer whose list of choices is empty."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An arbitrary HTTP body of any size."""

    head: bytes
    filler: bytes = b""
    times: int = 0
    end: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None


Step = Reply | Failure | Disconnect | NoChoices | Raw
Script = Iterable[Step] | Callable[[dict[str, Any]], Step]

OVERFLOW = Failure(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
    "tokens. Please reduce the length of the messages.",
    "context_length_exceeded",
)
"""OpenAI's error for a prompt that is too long."""


@dataclass(slots=True)
class ScriptedServer(LoopbackServer):
    """A server that takes a step of its script for each request."""

    script: Iterable[Any] | Callable[[Any], Any]
    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0
    _steps: Callable[[Any], Any] = field(init=False)
    _arrived: Signal = field(init=False, default_factory=Signal)

    def __post_init__(self) -> None:
        if callable(self.script):
            self._steps = self.script
        else:
            left = iter(self.script)
            over = Failure(400, "the script has no further step", "script_over")
            self._steps = lambda _request: next(left, over)
        app = self.application()
        for path, handler in self.routes().items():
            app.router.add_post(path, handler)

    def routes(self) -> Routes:
        """Return the handlers of POST requests by path."""
        raise NotImplementedError

    def keep(self, request: web.Request, body: Any) -> None:
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self._arrived.set()

    async def received(self, count: int) -> None:
        """Wait until this many requests have arrived."""
        while len(self.requests) < count:
            await self._arrived.wait()


@dataclass(slots=True)
class ScriptedOpenAI(ScriptedServer):
    """The server; an async context manager."""

    prefix: ClassVar[str] = "/v1"
    unsupported: ClassVar[frozenset[str]] = frozenset()
    """Claims that it supports not when it judges; all others it does."""
    embedded: list[list[str]] = field(default_factory=list)
    refusals: list[Failure | Disconnect] = field(default_factory=list)

    def routes(self) -> Routes:
        return {"/v1/chat/completions": self._answer, "/v1/embeddings": self._embed}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.keep(request, body)
        tools = [one["function"]["name"] for one in body.get("tools", ())]
        step: Step = _judgement(body, self.unsupported) if tools == [_JUDGE] else self._steps(body)
        match step:
            case Failure():
                return refusal(step)
            case Disconnect():
                return hang_up(request)
            case NoChoices():
                return web.json_response(_envelope(body, "chat.completion", []))
            case Raw():
                return await raw(request, body, step)
            case Reply() if body.get("stream"):
                return await _stream(request, body, step)
            case Reply():
                if step.gate is not None:
                    await step.gate.wait()
                return hang_up(request) if step.hang_up else _whole(body, step)

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        self.embedded.append(texts)
        if self.refusals:
            step = self.refusals.pop(0)
            return refusal(step) if isinstance(step, Failure) else hang_up(request)
        told: list[Any] = [embedding(text) for text in texts]
        if body.get("encoding_format") == "base64":
            packed = (struct.pack(f"<{DIMENSIONS}f", *vector) for vector in told)
            told = [base64.b64encode(one).decode() for one in packed]
        numbered = enumerate(told)
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in numbered]
        usage = {"prompt_tokens": 7 * len(texts), "total_tokens": 7 * len(texts)}
        model = body.get("model", "scripted")
        return web.json_response({"object": "list", "data": data, "model": model, "usage": usage})


def _judgement(body: dict[str, Any], unsupported: frozenset[str]) -> Step:
    """Return a judge's answer: supported claims end what they are to replace."""
    lines = str(body["messages"][-1]["content"]).splitlines()
    claims = [json.loads(line) for line in lines if line.startswith("{")]
    told = []
    for one in claims:
        ruling = "not_supported" if one["claim"] in unsupported else "supported"
        named = [fact["number"] for fact in one.get("replaces", ())]
        ends = named if ruling == "supported" else []
        told.append({"number": one["number"], "short_reason": "", "ruling": ruling, "ends": ends})
    return Reply(calls=(Call(_JUDGE, {"rulings": told}),))


def embedding(text: str) -> list[float]:
    """Return a text's embedding: counts of its words by hash."""
    vector = [0.0] * DIMENSIONS
    # A text without words needs a nonzero vector, too.
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector


def _envelope(body: dict[str, Any], kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": 1_700_000_000,
        "model": body.get("model", "scripted"),
        "choices": choices,
    }


def _usage(step: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": step.prompt_tokens,
        "completion_tokens": step.completion_tokens,
        "total_tokens": step.prompt_tokens + step.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": step.cached_tokens},
    }


def refusal(step: Failure, error: dict[str, Any] | None = None) -> web.Response:
    """Return the response of a failure, by default with OpenAI's error object."""
    told = {"message": step.message, "type": "scripted", "param": None, "code": step.code}
    headers = {} if step.retry_after is None else {"Retry-After": step.retry_after}
    return web.json_response(error or {"error": told}, status=step.status, headers=headers)


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _whole(body: dict[str, Any], step: Reply) -> web.Response:
    message: dict[str, Any] = {"role": "assistant", "content": step.content or None}
    if step.calls:
        message["tool_calls"] = [_call(call) for call in step.calls]
    choice = {"index": 0, "message": message, "finish_reason": step.ending or None}
    usage = {"usage": _usage(step)} if step.counted else {}
    return web.json_response(_envelope(body, "chat.completion", [choice]) | usage)


def pieces(text: str, size: int) -> list[str]:
    """Return a text in the pieces in which it is streamed."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def _call_deltas(step: Reply) -> Iterable[dict[str, Any]]:
    """Yield the calls as providers stream them: heads first, then arguments interleaved."""
    rest: list[list[str]] = []
    for index, call in enumerate(step.calls):
        whole = not isinstance(call.arguments, str)
        head = _call(call) if whole else _call(Call(call.name, "", call.id))
        rest.append([] if isinstance(call.arguments, dict) else pieces(call.arguments, step.piece))
        yield {"tool_calls": [{"index": index, **head}]}
    while any(rest):
        for index, left in enumerate(rest):
            if left:
                fragment = {"index": index, "function": {"arguments": left.pop(0)}}
                yield {"tool_calls": [fragment]}


async def raw(request: web.Request, body: dict[str, Any], step: Raw) -> web.StreamResponse:
    """Send a body as it is given."""
    asked = "text/event-stream" if body.get("stream") else "application/json"
    headers = {"Content-Type": step.content_type or asked, **dict(step.headers)}
    response = web.StreamResponse(status=step.status, headers=headers)
    await response.prepare(request)
    with suppress(ConnectionError):  # the client has disconnected
        await response.write(step.head)
        for _ in range(step.times):
            await response.write(step.filler)
        await response.write(step.end)
        await response.write_eof()
    return response


async def _stream(request: web.Request, body: dict[str, Any], step: Reply) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)

    async def send(event: dict[str, Any]) -> None:
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    async def delta(change: dict[str, Any], ending: str | None = None) -> None:
        choice = {"index": 0, "delta": change, "finish_reason": ending}
        await send(_envelope(body, "chat.completion.chunk", [choice]))

    await delta({"role": "assistant", "content": ""})
    for number, text in enumerate(pieces(step.content, step.piece)):
        await delta({"content": text})
        if number == 0 and step.gate is not None:
            await step.gate.wait()
    for change in _call_deltas(step):
        await delta(change)
    if step.hang_up:
        hang_up(request)
        return response
    if step.ending:
        await delta({}, step.ending)
        if step.counted and (body.get("stream_options") or {}).get("include_usage"):
            usage = {"usage": _usage(step)}
            await send(_envelope(body, "chat.completion.chunk", []) | usage)
        await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response
