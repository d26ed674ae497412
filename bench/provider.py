"""What reaching a provider costs: tapebot's client, litellm, and a plain post of the same body.

The scripted server runs in a process of its own, so CPU time is the client's alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter, process_time
from typing import Any

import aiohttp
import httpx
import openai

from bench.models import InstantModel
from bench.processes import model_server
from bench.program import Spent, program
from bench.report import Scale, Table, ms, p50, p95
from bench.seed import seed_in_view
from bot.llm.base import Model, ModelRequest
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import find_server
from bot.llm.litellm import LiteLLMModel
from bot.llm.openai_format import tools_json
from bot.llm.profiles import profile_for

_NAME = "openai/scripted"
_KEY = "bench"
_MESSAGES = (10, 100, 1_000)
_SETTINGS = {"context_tokens": 100_000_000, "memory_window": 100_000}

Call = Callable[[ModelRequest], Awaitable[object]]


async def measure(scale: Scale) -> list[Table]:
    """Measure single calls of each way, and whole turns with and without."""
    runs = scale.pick(15, 2)
    with model_server() as address:
        profile = profile_for(_NAME)
        server = find_server(_NAME, address, _KEY)
        assert server is not None
        ours = HTTPModel(_NAME, server, timeout=60, profile=profile)
        litellm = LiteLLMModel(_NAME, api_base=address, api_key=_KEY, timeout=60, profile=profile)
        instant = InstantModel()
        turns: dict[str, dict[int, list[Spent]]] = {}
        turns["instant"], requests = await _turns(scale, instant, "instant", runs)
        turns["ours"], _ = await _turns(scale, instant, "ours", runs, ours)
        turns["litellm"], _ = await _turns(scale, instant, "litellm", runs, litellm)
        client = openai.AsyncOpenAI(api_key=_KEY, base_url=address, max_retries=0)
        # The default context reads the system's certificates, which plain HTTP never asks for.
        async with (
            client,
            httpx.AsyncClient(verify=False) as http,
            aiohttp.ClientSession() as session,
        ):
            ways: dict[str, Call] = {
                "tapebot's own client": lambda request: ours.complete(request, _ignore),
                "litellm": lambda request: litellm.complete(request, _ignore),
                "the OpenAI client library": lambda request: _openai(client, request),
                "httpx post": lambda request: _httpx(http, address, request),
                "aiohttp post": lambda request: _aiohttp(session, address, request),
            }
            calls = await _calls(ways, requests, runs)
        await ours.aclose()
        await litellm.aclose()
    return [_call_table(calls, runs), _turn_table(turns)]


async def _turns(
    scale: Scale, instant: InstantModel, name: str, runs: int, model: Model | None = None
) -> tuple[dict[int, list[Spent]], dict[int, ModelRequest]]:
    """Take turns with each number of messages in view; keep the requests they make."""
    home = scale.work / name
    chats = {f"{messages}-{run}": messages - 2 for messages in _MESSAGES for run in range(runs)}
    await seed_in_view(home, chats)
    taken: dict[int, list[Spent]] = {messages: [] for messages in _MESSAGES}
    requests: dict[int, ModelRequest] = {}
    async with program(home, model or instant, **_SETTINGS) as running:
        await running.turn("warm")
        for chat in chats:
            await running.turn(chat)
            messages = int(chat.partition("-")[0])
            taken[messages].append(await running.turn(chat))
            if model is None and instant.last is not None:
                requests[messages] = instant.last
    return taken, requests


async def _calls(
    ways: dict[str, Call], requests: dict[int, ModelRequest], runs: int
) -> dict[str, dict[int, list[Spent]]]:
    """Make each call in turns with the others, after one to warm up."""
    taken: dict[str, dict[int, list[Spent]]] = {
        way: {messages: [] for messages in requests} for way in ways
    }
    for run in range(-1, runs):
        for messages, request in requests.items():
            for way, call in ways.items():
                wall, cpu = perf_counter(), process_time()
                await call(request)
                spent = Spent(perf_counter() - wall, process_time() - cpu)
                if run >= 0:
                    taken[way][messages].append(spent)
    return taken


def _ignore(_: str) -> None:
    """Take the text as it grows."""


def _body(request: ModelRequest) -> dict[str, Any]:
    return {
        "model": "scripted",
        "messages": list(request.messages),
        "tools": tools_json(request.tools),
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def _openai(client: openai.AsyncOpenAI, request: ModelRequest) -> str:
    text = ""
    async for chunk in await client.chat.completions.create(**_body(request)):
        for choice in chunk.choices:
            text += choice.delta.content or ""
    return text


async def _httpx(client: httpx.AsyncClient, address: str, request: ModelRequest) -> str:
    text = ""
    url = f"{address}/chat/completions"
    async with client.stream("POST", url, json=_body(request), timeout=60) as response:
        async for line in response.aiter_lines():
            text += _delta(line)
    return text


async def _aiohttp(client: aiohttp.ClientSession, address: str, request: ModelRequest) -> str:
    text = ""
    async with client.post(f"{address}/chat/completions", json=_body(request)) as response:
        async for line in response.content:
            text += _delta(line.decode())
    return text


def _delta(line: str) -> str:
    data = line.removeprefix("data: ").strip()
    if data in {"", "[DONE]"}:
        return ""
    return "".join(one["delta"].get("content") or "" for one in json.loads(data)["choices"])


def _cpu(spent: Sequence[Spent]) -> float:
    return ms(p50([one.cpu for one in spent]))


def _call_table(calls: dict[str, dict[int, list[Spent]]], runs: int) -> Table:
    plain = calls["aiohttp post"]
    return Table(
        "One streamed call of a model over loopback, by messages in the prompt: CPU ms",
        ("way", *(f"{n:,} p50" for n in _MESSAGES), "p95 of most", "× aiohttp at most", "wall ms"),
        [
            (
                way,
                *(_cpu(found[messages]) for messages in _MESSAGES),
                ms(p95([one.cpu for one in found[_MESSAGES[-1]]])),
                _cpu(found[_MESSAGES[-1]]) / _cpu(plain[_MESSAGES[-1]]),
                ms(p50([one.wall for one in found[_MESSAGES[-1]]])),
            )
            for way, found in calls.items()
        ],
        [f"median of {runs}; the last three columns are of {_MESSAGES[-1]:,} messages"],
    )


def _turn_table(turns: dict[str, dict[int, list[Spent]]]) -> Table:
    return Table(
        "A whole turn, by messages in view: CPU ms",
        ("messages", "instant model", "tapebot's own client", "litellm", "litellm × own"),
        [
            (
                f"{messages:,}",
                _cpu(turns["instant"][messages]),
                _cpu(turns["ours"][messages]),
                _cpu(turns["litellm"][messages]),
                _cpu(turns["litellm"][messages]) / _cpu(turns["ours"][messages]),
            )
            for messages in _MESSAGES
        ],
    )
