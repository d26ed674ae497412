"""A server of OpenAI's chat completions that answers at once, for programs that are compared with each other.

``python -m bench.instant_server FOLDER`` prints its port. The first part of a path says what is wanted:

- ``/instant/v1``: an answer.
- ``/slow/v1``: an answer after 40 ms.
- ``/NAME/v1``: an answer; the request is appended to ``FOLDER/NAME.jsonl`` before.

It does what HTTP/1.1 clients need and no more, so that it is not what is measured. Where requests are kept, it says how
much of one a cache would serve: what it has in common with the beginning of the one before. A request for a
consolidation of tapebot is answered by the tool call that it forces, or by the JSON object that it asks for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

from bench.workload import reply

SLOW = "slow"
INSTANT = "instant"
_LATENCY = 0.04
_PIECE = 24
_SAVES = b'"save_memory"'
_KEEPS = b"This is not from the user: tapebot now keeps"
_HISTORY = "[2026-01-02 10:00] The boat, the trip and the budget were talked over."


class InstantServer(asyncio.Protocol):
    """One connection; requests are kept in the folder, and the last prompt of each name is compared with."""

    def __init__(self, folder: Path, numbers: count[int], before: dict[str, str]) -> None:
        self._folder = folder
        self._numbers = numbers
        self._before = before
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            length = _length(head)
            if len(self._received) < end + 4 + length:
                return
            body = bytes(self._received[end + 4 : end + 4 + length])
            del self._received[: end + 4 + length]
            self._answer(head.split(b" ", 2)[1].decode(), body)

    def _answer(self, path: str, body: bytes) -> None:
        served = 0
        name, _, rest = path.lstrip("/").partition("/")
        if not rest.endswith("chat/completions"):
            self._send(_response(b'{"object": "list", "data": []}', "application/json"))
            return
        if name not in (INSTANT, SLOW):
            with (self._folder / f"{name}.jsonl").open("ab") as kept:
                kept.write(body.replace(b"\n", b" ") + b"\n")
            prompt = _prompt(body)
            served = _in_common(self._before.get(name, ""), prompt)
            self._before[name] = prompt
        said = answer(body, next(self._numbers), served)
        if name == SLOW or name.startswith(f"{SLOW}-"):
            asyncio.get_running_loop().call_later(_LATENCY, self._send, said)
        else:
            self._send(said)

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def answer(body: bytes, number: int, served: int = 0) -> bytes:
    """Return the whole response to a request, streamed if it asks for that; a cache served some characters of it."""
    told = {"prompt_tokens": len(body) // 4, "completion_tokens": 40}
    usage: dict[str, Any] = {**told, "total_tokens": sum(told.values())}
    if served:
        usage["prompt_tokens_details"] = {"cached_tokens": min(served // 4, told["prompt_tokens"])}
    message: dict[str, Any] = {"role": "assistant", "content": reply(number)}
    ending = "stop"
    # Most requests of tapebot have the tool; a consolidation has it alone.
    if _SAVES in body and _forced(json.loads(body)):
        message, ending = (
            {"role": "assistant", "content": None, "tool_calls": [_saving()]},
            "tool_calls",
        )
    elif _KEEPS in body and _asks_to_keep(json.loads(body)):
        message = {"role": "assistant", "content": _kept()}
    if b'"stream": true' not in body and b'"stream":true' not in body:
        choice = {"index": 0, "message": message, "finish_reason": ending}
        whole = _envelope("chat.completion", [choice]) | {"usage": usage}
        return _response(json.dumps(whole).encode(), "application/json")
    events = [
        _event([{"index": 0, "delta": one, "finish_reason": None}]) for one in _deltas(message)
    ]
    events.append(_event([{"index": 0, "delta": {}, "finish_reason": ending}]))
    events.append(_event([], usage=usage))
    return _response(b"".join([*events, b"data: [DONE]\n\n"]), "text/event-stream")


def _prompt(body: bytes) -> str:
    """Return what a model reads of a request, in that order."""
    request = json.loads(body)
    whole = [request.get("tools"), request["messages"]]
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _in_common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _forced(request: dict[str, Any]) -> bool:
    return [one["function"]["name"] for one in request.get("tools", ())] == ["save_memory"]


def _asks_to_keep(request: dict[str, Any]) -> bool:
    return str(request["messages"][-1]["content"]).encode().startswith(_KEEPS)


def _kept() -> str:
    return json.dumps({"history_entry": _HISTORY, "changes": []})


def _saving() -> dict[str, Any]:
    return {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "save_memory", "arguments": _kept()},
    }


def _deltas(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message["content"] is None:
        return [message]
    text = message["content"]
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    return [{"role": "assistant", "content": ""}, *({"content": one} for one in pieces)]


def _envelope(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "c-1", "object": kind, "created": 1, "model": "scripted", "choices": choices}


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    event = _envelope("chat.completion.chunk", choices) | more
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _response(body: bytes, kind: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def _serve(folder: Path) -> None:
    numbers = count(1)
    before: dict[str, str] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: InstantServer(folder, numbers, before), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(Path(sys.argv[1])))
