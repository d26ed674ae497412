"""Check with real calls what a model can do: answers, tools, JSON, streams, images, usage."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
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
    """Call a model, which has no fallbacks, once for each capability, each call within some seconds."""
    answers, _first = await _check(model, "answers", seconds, needed=True)
    price = await list_price(model.name)
    if not answers.works or model.name == "offline":
        # The notebook is no model; nothing else can be asked of it.
        rest = (Check(name, None) for name in _REQUESTS if name != "answers")
        return ModelChecks((answers, *rest), None, price)
    profile = model.profile
    needed = {
        "stream": True,
        "tools": profile.tools,
        "forced": profile.tools,
        "json": profile.json_schema,
        "images": profile.vision,
        "usage": False,
    }
    checks, first_token = [answers], None
    for name, is_needed in needed.items():
        if name == "images" and not profile.vision:
            checks.append(Check(name, None, detail=_("tapebot sends it none")))
            continue
        check, first = await _check(model, name, seconds, needed=is_needed)
        checks.append(check)
        first_token = first_token or first
    return ModelChecks(tuple(checks), first_token, price)


async def check_answers_and_tools(model: Model, *, seconds: float) -> tuple[Check, Check]:
    """Call a model, which has no fallbacks, for an answer, and for a tool call if it answers.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    answers, _first = await _check(
        model, "answers", seconds, needed=True, passed=(ModelUnavailable,)
    )
    if not answers.works or not model.profile.tools:
        return answers, Check("tools", None)
    return answers, (await _check(model, "tools", seconds, needed=True))[0]


async def _check(
    model: Model,
    name: str,
    seconds: float,
    *,
    needed: bool,
    passed: tuple[type[ModelError], ...] = (),
) -> tuple[Check, float | None]:
    """Make the call of a check; return what came of it, and the seconds to the first streamed text."""
    request, judge = _REQUESTS[name]
    began, seen = anyio.current_time(), []

    def on_text(_text: str) -> None:
        seen.append(anyio.current_time() - began)

    try:
        with anyio.fail_after(seconds):
            reply = await model.complete(request, on_text if name == "stream" else None)
        why = judge(reply)
        if name == "stream" and not seen:
            why = _("no text was streamed")
    except passed:
        raise
    except ModelError as error:
        why = f"{error}"
    except TimeoutError:
        why = _("no answer within {seconds:g} seconds", seconds=seconds)
    return Check(name, not why, needed, why), next(iter(seen), None)


def _answered(reply: ModelReply) -> str:
    return "" if reply.content.strip() else _("the answer is empty")


def _called(reply: ModelReply) -> str:
    call = next((call for call in reply.tool_calls if call.name == _TOOL.name), None)
    if call is None:
        return _("it did not call the tool")
    try:
        numbers = json.loads(call.arguments)
    except ValueError:
        return _("its arguments are not JSON")
    fits = isinstance(numbers, dict) and sorted(numbers) == ["a", "b"]
    return "" if fits else _("its arguments do not fit the tool")


def _wrote_json(reply: ModelReply) -> str:
    try:
        answer = json.loads(reply.content)
    except ValueError:
        return _("the answer is not JSON")
    fits = isinstance(answer, dict) and isinstance(answer.get("city"), str)
    return "" if fits else _("the answer does not fit the schema")


def _red_square(side: int = 32) -> str:
    """Return a PNG image of a red square as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\x00" + b"\xff\x00\x00" * side) * side
    image = chunk(b"IDAT", zlib.compress(rows))
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + image + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _request(content: Any, **more: Any) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": content}], max_tokens=_TOKENS, **more)


_READY = _request("Answer with one word: ready")
_SUM = "What is 17 + 25? Use the tool add_numbers."
_PICTURE = [
    {"type": "text", "text": "Which colour is this square? Answer with one word, in English."},
    {"type": "image_url", "image_url": {"url": _red_square()}},
]
_REQUESTS: dict[str, tuple[ModelRequest, Callable[[ModelReply], str]]] = {
    "answers": (_READY, _answered),
    "stream": (_request("Count from one to five, in words."), lambda _reply: ""),
    "tools": (_request(_SUM, tools=(_TOOL,)), _called),
    "forced": (_request(_SUM, tools=(_TOOL,), tool_choice=_TOOL.name), _called),
    "json": (
        _request("Which city is the capital of France?", json_schema=_SCHEMA),
        _wrote_json,
    ),
    "images": (
        _request(_PICTURE),
        lambda reply: "" if "red" in reply.content.lower() else _("it did not see a red square"),
    ),
    "usage": (_READY, lambda reply: "" if reply.usage_reported else _("tokens are estimated")),
}
"""What is asked for each check, and why an answer fails it; "" if it does not."""
