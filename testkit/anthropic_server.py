"""A scripted server for Anthropic's messages on a real socket, which checks requests as the API does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from testkit.loopback import Routes, hang_up
from testkit.openai_server import Failure, Raw, Reply, ScriptedServer, pieces, raw, refusal

Step = Reply | Failure | Raw

_ENDINGS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(slots=True)
class ScriptedAnthropic(ScriptedServer):
    """The server; an async context manager."""

    thinking: bool = False

    def routes(self) -> Routes:
        return {"/v1/messages": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.keep(request, body)
        if (fault := find_fault(body)) is not None:
            return _refusal(Failure(400, fault))
        step: Step = self._steps(body)
        if isinstance(step, Failure):
            return _refusal(step)
        if isinstance(step, Raw):
            return await raw(request, body, step)
        if not body.get("stream"):
            return web.json_response(self._message(body, step))
        return await self._stream(request, body, step)

    def _message(self, body: dict[str, Any], step: Reply) -> dict[str, Any]:
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": self._blocks(step),
            "stop_reason": _ENDINGS.get(step.ending, step.ending),
            "usage": _usage(step) | {"output_tokens": step.completion_tokens},
        }

    def _blocks(self, step: Reply) -> list[dict[str, Any]]:
        thought = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}
        blocks: list[dict[str, Any]] = [thought] if self.thinking else []
        if step.content:
            blocks.append({"type": "text", "text": step.content})
        for call in step.calls:
            text = call.arguments
            given = json.loads(text) if isinstance(text, str) else text
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
        return blocks

    async def _stream(
        self, request: web.Request, body: dict[str, Any], step: Reply
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(kind: str, **fields: Any) -> None:
            event = json.dumps({"type": kind, **fields})
            await response.write(f"event: {kind}\ndata: {event}\n\n".encode())

        message = {**self._message(body, step), "content": [], "stop_reason": None}
        await send(
            "message_start", message=message | {"usage": _usage(step) | {"output_tokens": 1}}
        )
        await send("ping")
        for index, block in enumerate(self._blocks(step)):
            start, deltas = _split(block, step.piece)
            await send("content_block_start", index=index, content_block=start)
            for delta in deltas:
                await send("content_block_delta", index=index, delta=delta)
            await send("content_block_stop", index=index)
        if step.hang_up:
            hang_up(request)
            return response
        if step.ending:
            delta = {"stop_reason": _ENDINGS.get(step.ending, step.ending)}
            await send(
                "message_delta", delta=delta, usage={"output_tokens": step.completion_tokens}
            )
            await send("message_stop")
        await response.write_eof()
        return response


def find_fault(body: dict[str, Any]) -> str | None:
    """Return what the API would refuse a request for; None if nothing."""
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    messages = body.get("messages") or []
    if not messages or messages[0]["role"] != "user":
        return "messages: first message must use the user role"
    for place, message in enumerate(messages):
        if place and messages[place - 1]["role"] == message["role"]:
            return f"messages.{place}: roles must alternate"
        asked = {
            block["id"]
            for block in messages[place - 1]["content"]
            if place and block["type"] == "tool_use"
        }
        given = {
            block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"
        }
        if asked != given:
            return f"messages.{place}: `tool_use` ids without `tool_result` blocks: {asked ^ given}"
        if any(b["type"] == "text" and not b["text"].strip() for b in message["content"]):
            return f"messages.{place}: text content blocks must be non-empty"
    return None


def _split(block: dict[str, Any], piece: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the start of a streamed block, and the changes that complete it."""
    kind = block["type"]
    if kind == "text":
        parts = pieces(block["text"], piece)
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in parts]
    if kind == "tool_use":
        parts = pieces(json.dumps(block["input"]), piece) if block["input"] else [""]
        changes = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        return {**block, "input": {}}, changes
    thought = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"], piece)]
    signature = {"type": "signature_delta", "signature": block["signature"]}
    return {"type": kind, "thinking": "", "signature": ""}, [*thought, signature]


def _usage(step: Reply) -> dict[str, Any]:
    return {
        "input_tokens": step.prompt_tokens - step.cached_tokens,
        "cache_read_input_tokens": step.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _refusal(step: Failure) -> web.Response:
    error = {"type": _TYPES.get(step.status, "api_error"), "message": step.message}
    return refusal(step, {"type": "error", "error": error})
