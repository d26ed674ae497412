"""A scripted server for Ollama's chat on a real socket: one JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from testkit.loopback import Routes
from testkit.openai_server import Failure, Reply, ScriptedServer, pieces, refusal


class ScriptedOllama(ScriptedServer):
    """The server; an async context manager."""

    def routes(self) -> Routes:
        return {"/api/chat": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.keep(request, body)
        step: Reply | Failure = self._steps(body)
        if isinstance(step, Failure):
            return refusal(step, {"error": step.message})
        messages = list(_messages(step))
        if not body.get("stream", True):
            whole = {"role": "assistant", "content": step.content}
            if step.calls:
                whole["tool_calls"] = messages[-1]["tool_calls"]
            return web.json_response(_end(body, step) | {"message": whole})
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for message in messages:
            line = {"model": body["model"], "message": message, "done": False}
            await response.write(json.dumps(line).encode() + b"\n")
        if step.ending:
            await response.write(json.dumps(_end(body, step)).encode() + b"\n")
        await response.write_eof()
        return response


def _messages(step: Reply) -> Iterator[dict[str, Any]]:
    for text in pieces(step.content, step.piece):
        yield {"role": "assistant", "content": text}
    if step.calls:
        calls = [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in step.calls
        ]
        yield {"role": "assistant", "content": "", "tool_calls": calls}


def _end(body: dict[str, Any], step: Reply) -> dict[str, Any]:
    end: dict[str, Any] = {
        "model": body["model"],
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "length" if step.ending == "length" else "stop",
    }
    counts = {"prompt_eval_count": step.prompt_tokens, "eval_count": step.completion_tokens}
    return end | counts if step.counted else end
