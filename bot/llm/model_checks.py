"""Check with real calls what a model can do: answers, tools, JSON, streams, images, usage."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio

from bot.core.errors import ModelError, ModelUnavailable
from bot.core.i18n import _
from bot.llm.base import Model, ModelReply, ModelRequest, ToolSpec
from bot.llm.prices import Price, list_price

_TOKENS = 2_000
"""The most tokens of an answer; models that think need more than the answer has."""

_TOOL = ToolSpec(
    "add_numbers",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
_OTHERS = ("stream", "tools", "forced", "json", "images", "usage")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        name: What was checked.
        works: Whether it works; None if it was not tried.
        needed: Whether tapebot will use it with this model.
        detail: Why it does not work, or a number.
    """

    name: str
    works: bool | None
    needed: bool = False
    detail: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether tapebot will miss it."""
        return self.needed and self.works is False


@dataclass(frozen=True, slots=True)
class ModelChecks:
    """What a model can do.

    Attributes:
        checks: One for each capability, in a fixed order.
        first_token: Seconds to the first streamed text; None if nothing was streamed.
        price: The list price; None if it is unknown.
    """

    checks: tuple[Check, ...]
    first_token: float | None
    price: Price | None


async def check_model(model: Model, *, seconds: float) -> ModelChecks:
    """Call a model once for each capability.

    Args:
        model: The model, without fallbacks: they would hide what it cannot do.
        seconds: The most seconds for each call.
    """
    answers = await _checked("answers", lambda: _answers(model), seconds, needed=True)
    if not answers.works or model.name == "offline":
        # The notebook is no model; nothing else can be asked of it.
        rest = tuple(Check(name, None) for name in _OTHERS)
        return ModelChecks((answers, *rest), None, await list_price(model.name))
    seen: list[float] = []
    profile = model.profile
    checks = (
        answers,
        await _checked("stream", lambda: _streams(model, seen), seconds, needed=True),
        await _checked("tools", lambda: _calls(model, "auto"), seconds, needed=profile.tools),
        await _checked("forced", lambda: _calls(model, _TOOL.name), seconds, needed=profile.tools),
        await _checked("json", lambda: _json(model), seconds, needed=profile.json_schema),
        await _images(model, seconds),
        await _checked("usage", lambda: _usage(model), seconds),
    )
    return ModelChecks(checks, next(iter(seen), None), await list_price(model.name))


async def check_answers_and_tools(model: Model, *, seconds: float) -> tuple[Check, Check]:
    """Call a model twice: for an answer, and for a tool call if it answers.

    Args:
        model: The model, without fallbacks.
        seconds: The most seconds for each call.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    passed = (ModelUnavailable,)
    answers = await _checked(
        "answers", lambda: _answers(model), seconds, needed=True, passed=passed
    )
    if not answers.works or not model.profile.tools:
        return answers, Check("tools", None)
    return answers, await _checked("tools", lambda: _calls(model, "auto"), seconds, needed=True)


async def _checked(
    name: str,
    run: Callable[[], Awaitable[str]],
    seconds: float,
    *,
    needed: bool = False,
    passed: tuple[type[ModelError], ...] = (),
) -> Check:
    """Run a check, which returns why the capability does not work; empty if it does."""
    try:
        with anyio.fail_after(seconds):
            why = await run()
    except passed:
        raise
    except ModelError as error:
        why = f"{error}"
    except TimeoutError:
        why = _("no answer within {seconds:g} seconds", seconds=seconds)
    return Check(name, not why, needed, why)


async def _answers(model: Model) -> str:
    reply = await _ask(model, "Answer with one word: ready")
    return "" if reply.content.strip() else _("the answer is empty")


async def _streams(model: Model, seen: list[float]) -> str:
    began, parts = anyio.current_time(), []

    def on_text(text: str) -> None:
        seen.append(anyio.current_time() - began)
        parts.append(text)

    await model.complete(_request("Count from one to five, in words."), on_text)
    return "" if parts else _("no text was streamed")


async def _calls(model: Model, choice: str) -> str:
    request = _request("What is 17 + 25? Use the tool add_numbers.")
    reply = await model.complete(replace(request, tools=(_TOOL,), tool_choice=choice))
    call = next((call for call in reply.tool_calls if call.name == _TOOL.name), None)
    if call is None:
        return _("it did not call the tool")
    try:
        numbers = json.loads(call.arguments)
    except ValueError:
        return _("its arguments are not JSON")
    fits = isinstance(numbers, dict) and sorted(numbers) == ["a", "b"]
    return "" if fits else _("its arguments do not fit the tool")


async def _json(model: Model) -> str:
    request = _request("Which city is the capital of France?")
    reply = await model.complete(replace(request, json_schema=_SCHEMA))
    try:
        answer = json.loads(reply.content)
    except ValueError:
        return _("the answer is not JSON")
    fits = isinstance(answer, dict) and isinstance(answer.get("city"), str)
    return "" if fits else _("the answer does not fit the schema")


async def _images(model: Model, seconds: float) -> Check:
    if not model.profile.vision:
        return Check("images", None, detail=_("tapebot sends it none"))
    return await _checked("images", lambda: _sees(model), seconds, needed=True)


async def _sees(model: Model) -> str:
    url = f"data:image/png;base64,{base64.b64encode(_red_square()).decode()}"
    content = [
        {"type": "text", "text": "Which colour is this square? Answer with one word, in English."},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    request = ModelRequest([{"role": "user", "content": content}], max_tokens=_TOKENS)
    reply = await model.complete(request)
    return "" if "red" in reply.content.lower() else _("it did not see a red square")


async def _usage(model: Model) -> str:
    reply = await _ask(model, "Answer with one word: ready")
    return "" if reply.usage_reported else _("tokens are estimated")


async def _ask(model: Model, text: str) -> ModelReply:
    return await model.complete(_request(text))


def _request(text: str) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": text}], max_tokens=_TOKENS)


def _red_square(side: int = 32) -> bytes:
    """Return a PNG image of a red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\x00" + b"\xff\x00\x00" * side) * side
    image = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + image + chunk(b"IEND", b"")
