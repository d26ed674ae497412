"""A scripted server for Ollama's chat on a real socket: one JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from testkit.loopback import LoopbackServer
from testkit.openai_server import Failure, Reply


@dataclass(slots=True)
class ScriptedOllama(LoopbackServer):
    """The server; an async context manager."""

    script: Iterable[Reply | Failure]
    requests: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0
    _steps: Iterator[Reply | Failure] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = iter(self.script)
        self.serve({"/api/chat": self._answer})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        step = next(self._steps, Failure(500, "the script has no further step"))
        if isinstance(step, Failure):
            return web.json_response({"error": step.message}, status=step.status)
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
    for start in range(0, len(step.content), step.piece):
        yield {"role": "assistant", "content": step.content[start : start + step.piece]}
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
