"""Call a model, and leave out of the request what its server refuses.

One picture that a server cannot read, or one text that its filter forbids, has it refuse the whole
request, and so every later one that shows it. The part is found by its effect: the newest parts are
left out, pictures first, more and more of them until the server answers, then fewer by bisection. It
is remembered on the tape. Where leaving out everything does not help, no part is to blame.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from bot.core.errors import ModelRejected, TransientModelError
from bot.llm.base import ChatMessage, Model, ModelReply, ModelRequest, OnText, Usage
from bot.memory.records.refusals import refused_event
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

_MOST_CALLS = 24
_PICTURE = "[a picture that the model's server refused]"
_TEXT = "[a text that the model's server refused]"
# A transcript's message is one part: its further lines are indented.
_LINE = re.compile(r"\n(?! )")
_NUMBER = re.compile(r"#\d+ ")


class _Guard:
    """Guards the calls that are made for one session."""

    def __init__(self, tape: TapeService, fold: SessionFold) -> None:
        self._tape = tape
        self._fold = fold
        self._accepted: dict[tuple[str, str], set[int]] = {}

    async def complete(
        self, model: Model, request: ModelRequest, on_text: OnText | None
    ) -> ModelReply:
        refused = self._fold.refused.parts
        request = _without(request, lambda part: bool(refused) and _digest(part) in refused)
        try:
            reply = await model.complete(request, on_text)
        except (ModelRejected, TransientModelError) as error:
            if not error.of_content:
                raise
            return await self._find(model, request, error)
        self._accepted[model.name, request.purpose] = {hash(part) for part in _parts(request)}
        return reply

    async def _find(
        self, model: Model, request: ModelRequest, error: ModelRejected | TransientModelError
    ) -> ModelReply:
        """Return the reply to the request without what is refused, which is recorded."""
        accepted = self._accepted.get((model.name, request.purpose), ())
        parts = list(dict.fromkeys(reversed(_parts(request))))
        if isinstance(error, TransientModelError):
            # A server that fails may be at fault itself, unless pictures came that it cannot read.
            parts = [part for part in parts if _is_picture(part) and hash(part) not in accepted]
        parts.sort(key=lambda part: (hash(part) in accepted, not _is_picture(part)))
        new = sum(hash(part) not in accepted for part in parts)
        search = _Search(model, request)
        await search.run(parts, {1, new, len(parts)})
        if search.reply is None:
            raise error
        found = search.found
        logger.warning("%s refused %d parts of a request: %s", model.name, len(found), error)
        named = [request.sources[part] for part in found if part in request.sources]
        entries = [entry for tape, entry in named if tape == self._tape.name]
        if found:
            pictures = {_digest(part): _is_picture(part) for part in found}
            await self._tape.append(refused_event(pictures, entries))
        return replace(search.reply, usage=search.spent)


class _Search:
    """Finds the fewest parts without which a server answers a request."""

    def __init__(self, model: Model, request: ModelRequest) -> None:
        self.found: list[str] = []
        self.reply: ModelReply | None = None
        self.spent = Usage()
        self._model = model
        self._request = request
        self._calls = 0

    async def run(self, parts: list[str], first: set[int]) -> None:
        """Search among parts, the most suspicious first; begin with so many of them."""
        failed = 0
        if not parts or await self._answers([]):
            return  # Nothing can be to blame, or the refusal was a whim.
        for passed in sorted(first):
            if 0 < passed <= len(parts) and await self._answers(parts[:passed]):
                break
            failed = passed
        else:
            return
        while parts:
            while passed - failed > 1 and self._calls < _MOST_CALLS:
                middle = max(failed + 1, min(2 * failed, (failed + passed) // 2))
                if await self._answers(parts[:middle]):
                    passed = middle
                else:
                    failed = middle
            if passed - failed > 1:
                return
            self.found.append(parts[passed - 1])
            failed, passed, parts = 0, passed - 1, parts[: passed - 1]
            if parts and await self._answers([]):
                return

    async def _answers(self, left_out: list[str]) -> bool:
        """Return whether the server answers without what was found and these parts."""
        self._calls += 1
        try:
            out = {*self.found, *left_out}
            reply = await self._model.complete(_without(self._request, out.__contains__))
        except (ModelRejected, TransientModelError) as error:
            if not error.of_content:
                raise
            return False
        self.spent += reply.usage
        self.reply = reply
        return True


_guard: ContextVar[_Guard | None] = ContextVar("guard", default=None)


@contextmanager
def refusals_recorded(tape: TapeService, fold: SessionFold) -> Iterator[None]:
    """Remember on a session's tape what servers refuse of the calls within the block."""
    token = _guard.set(_Guard(tape, fold))
    try:
        yield
    finally:
        _guard.reset(token)


async def complete(
    model: Model, request: ModelRequest, on_text: OnText | None = None
) -> ModelReply:
    """Run one call without what a server refused, or refuses now; see ``Model.complete``."""
    guard = _guard.get()
    if guard is None:
        return await model.complete(request, on_text)
    return await guard.complete(model, request, on_text)


def _digest(part: str) -> str:
    text = _NUMBER.sub("", part, count=1) if part.startswith("#") else part
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_picture(part: str) -> bool:
    return part.startswith("data:image/")


def _parts(request: ModelRequest) -> list[str]:
    """Return what can be left out of a request, the oldest first."""
    found: list[str] = []

    def collect(part: str) -> str:
        found.append(part)
        return part

    _changed(request, collect)
    return [part for part in found if part.strip()]


def _without(request: ModelRequest, refused: Callable[[str], bool]) -> ModelRequest:
    """Return a request with a line in the place of each refused part."""

    def change(part: str) -> str:
        if not part.strip() or not refused(part):
            return part
        number = _NUMBER.match(part)
        return _PICTURE if _is_picture(part) else f"{number[0] if number else ''}{_TEXT}"

    return _changed(request, change)


def _changed(request: ModelRequest, change: Callable[[str], str]) -> ModelRequest:
    """Return a request with each part changed: tools, lines of prompts, whole messages of others."""
    tools = [tool for tool in request.tools if change(tool.description) == tool.description]
    messages = [_changed_message(one, request, change) for one in request.messages[:-1]]
    last, length = dict(request.messages[-1]), request.tail_length
    if length and isinstance(last["content"], str):
        head, tail = last["content"][:-length], last["content"][-length:]
        tail = "\n".join(map(change, _LINE.split(tail)))
        last = _changed_message({**last, "content": head}, request, change)
        last["content"], length = last["content"] + tail, len(tail)
    else:
        last = _changed_message(last, request, change)
        if length:
            length = len(last["content"][-1]["text"])
    return replace(request, tools=tools, messages=[*messages, last], tail_length=length)


def _changed_message(
    message: ChatMessage, request: ModelRequest, change: Callable[[str], str]
) -> ChatMessage:
    def text(whole: str) -> str:
        if message["role"] in ("assistant", "tool") or whole in request.sources:
            return change(whole)
        return "\n".join(map(change, _LINE.split(whole)))

    def part(one: Any) -> Any:
        if isinstance(url := (one.get("image_url") or {}).get("url"), str):
            shown = change(url)
            return one if shown == url else {"type": "text", "text": shown}
        return {**one, "text": text(one["text"])} if isinstance(one.get("text"), str) else one

    def call(one: Any) -> Any:
        given = one["function"]["arguments"]
        kept = given if change(given) == given else "{}"
        return {**one, "function": {**one["function"], "arguments": kept}}

    made = dict(message)
    if isinstance(content := message.get("content"), str):
        made["content"] = text(content)
    elif isinstance(content, list):
        made["content"] = list(map(part, content))
    if message.get("tool_calls"):
        made["tool_calls"] = list(map(call, message["tool_calls"]))
    return made
