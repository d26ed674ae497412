"""A scripted server for OpenAI's transcription API on a real socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import anyio
from aiohttp import BodyPartReader, web

from testkit.loopback import Routes, hang_up
from testkit.openai_server import Disconnect, Failure, ScriptedServer, refusal

Step = str | Failure | Disconnect | anyio.Event
"""A transcript, an HTTP error, a broken connection, or no answer until the event is set."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A received request."""

    model: str
    name: str
    audio: bytes
    key: str


class ScriptedTranscriptions(ScriptedServer):
    """The server; an async context manager."""

    prefix: ClassVar[str] = "/v1"

    def routes(self) -> Routes:
        return {"/v1/audio/transcriptions": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        heard = await _heard(request)
        self.keep(request, heard)
        step: Step = self._steps(heard)
        if isinstance(step, anyio.Event):
            await step.wait()
            step = ""
        if isinstance(step, Disconnect):
            return hang_up(request)
        if isinstance(step, Failure):
            return refusal(step)
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
