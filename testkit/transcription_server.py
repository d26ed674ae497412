"""A scripted server for OpenAI's transcription API on a real socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import anyio
from aiohttp import BodyPartReader, web

from testkit.loopback import LoopbackServer, hang_up
from testkit.openai_server import Disconnect, Failure

Step = str | Failure | Disconnect | anyio.Event
"""A transcript, an HTTP error, a broken connection, or no answer until the event is set."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A received request."""

    model: str
    name: str
    audio: bytes
    key: str


@dataclass(slots=True)
class ScriptedTranscriptions(LoopbackServer):
    """The server; an async context manager."""

    prefix: ClassVar[str] = "/v1"
    script: Iterable[Step]
    requests: list[Heard] = field(default_factory=list)
    port: int = 0
    _steps: Iterator[Step] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = iter(self.script)
        self.serve({"/v1/audio/transcriptions": self._answer})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await _heard(request))
        step = next(self._steps, Failure(400, "the script has no further step"))
        if isinstance(step, anyio.Event):
            await step.wait()
            step = ""
        if isinstance(step, Disconnect):
            return hang_up(request)
        if isinstance(step, Failure):
            headers = {} if step.retry_after is None else {"Retry-After": step.retry_after}
            error = {"message": step.message, "type": "scripted", "code": step.code}
            return web.json_response({"error": error}, status=step.status, headers=headers)
        return web.json_response({"text": step})


async def _heard(request: web.Request) -> Heard:
    fields: dict[str, str] = {}
    name, audio = "", b""
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        if part.filename is not None:
            name, audio = part.filename, bytes(await part.read())
        else:
            fields[part.name or ""] = await part.text()
    return Heard(fields.get("model", ""), name, audio, request.headers.get("Authorization", ""))
