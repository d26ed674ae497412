"""Call a model, and leave out of the request what its server refuses.

One picture that a server cannot read, or one text that its filter forbids, has it refuse the whole
request, and so every later one that shows it. The part is found by its effect: the newest parts are
left out, pictures first, more and more of them until the server answers, then fewer by bisection. It
is remembered on the tape if the whole request is refused again after that. Where leaving out everything
does not help, no part is to blame.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import ReferenceType, ref

from bot.core.errors import ModelError, TransientModelError
from bot.core.patterns import LazyPattern
from bot.llm.base import Model, ModelReply, ModelRequest, OnText, Usage
from bot.memory.records.refusals import MODEL_REFUSED
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import event
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

_MOST_CALLS = 24
_PICTURE = "[a picture that the model's server refused]"  # for the model
_TEXT = "[a text that the model's server refused]"  # for the model
_TAIL = "\n\n<records>"
# A transcript's message is one part: its further lines are indented.
_LINE = LazyPattern(r"\n(?! )")
_NUMBER = LazyPattern(r"(?:#\d+ )?")


class _Guard:
    """Guards the calls that are made for one session."""

    def __init__(self, tape: TapeService, fold: SessionFold) -> None:
        self._tape = tape
        self._fold = fold
        self._accepted: dict[tuple[str, str], set[int]] = {}

    async def complete(
        self, model: Model, request: ModelRequest, on_text: OnText | None, search: bool
    ) -> ModelReply:
        refused = self._fold.refused.parts
        request = _without(request, lambda part: bool(refused) and _digest(part) in refused)
        try:
            reply = await model.complete(request, on_text)
        except ModelError as error:
            if not error.of_content or not search:
                raise
            accepted = self._accepted.get((model.name, request.purpose), set())
            reply, found = await _find(model, request, error, accepted)
            logger.warning("%s refused %d parts of a request: %s", model.name, len(found), error)
            sources = [request.sources[part] for part in found if part in request.sources]
            told = {
                "parts": [_digest(part) for part in found],
                "entries": [entry for tape, entry in sources if tape == self._tape.name],
                "kinds": sorted({"picture" if _is_picture(part) else "text" for part in found}),
            }
            if found:
                await self._tape.append(event(MODEL_REFUSED, told))
        else:
            self._accepted[model.name, request.purpose] = set(map(hash, _parts(request)))
        return reply


# Weak: what a task begins for everybody keeps its context, and must not keep a session.
_guard: ContextVar[ReferenceType[_Guard] | None] = ContextVar("guard", default=None)


@contextmanager
def refusals_recorded(tape: TapeService, fold: SessionFold) -> Iterator[None]:
    """Remember on a session's tape what servers refuse of the calls within the block."""
    guard = _Guard(tape, fold)
    token = _guard.set(ref(guard))
    try:
        yield
    finally:
        _guard.reset(token)


async def complete(
    model: Model, request: ModelRequest, on_text: OnText | None = None, *, search: bool = True
) -> ModelReply:
    """Run one call without what a server refused, or, if searched for, refuses now; see ``Model.complete``."""
    held = _guard.get()
    guard = held() if held is not None else None
    if guard is None:
        return await model.complete(request, on_text)
    return await guard.complete(model, request, on_text, search)


@dataclass(slots=True)
class _Search:
    """A search for the fewest parts, the most suspicious first, without which a request is answered."""

    model: Model
    request: ModelRequest
    parts: Sequence[str]
    found: list[str] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)
    calls: int = 0

    async def run(self, first: Iterable[int]) -> None:
        """Search, beginning with so many of the parts left out."""
        failed = passed = 0
        for passed in first:
            if await self._answers(passed):
                break
            failed = passed
        while passed and self.replies:
            while passed - failed > 1 and self.calls < _MOST_CALLS:
                middle = max(failed + 1, min(2 * failed, (failed + passed) // 2))
                if await self._answers(middle):
                    passed = middle
                else:
                    failed = middle
            if passed - failed > 1:
                break
            self.found.append(self.parts[passed - 1])
            failed, passed = 0, passed - 1
            if passed and await self._answers(0):
                break

    async def _answers(self, suspects: int) -> bool:
        self.calls += 1
        out = {*self.found, *self.parts[:suspects]}
        try:
            self.replies.append(await self.model.complete(_without(self.request, out.__contains__)))
        except ModelError as again:
            if not again.of_content:
                raise
            return False
        return True


async def _find(
    model: Model, request: ModelRequest, error: ModelError, accepted: set[int]
) -> tuple[ModelReply, list[str]]:
    """Return the reply to a request without the fewest parts that are refused, and these.

    Raises:
        ModelError: No part is to blame.
    """
    parts = list(dict.fromkeys(reversed(_parts(request))))
    if error.is_long or isinstance(error, TransientModelError):
        # Its length or the server itself may be at fault, unless pictures came that it cannot read.
        parts = [part for part in parts if _is_picture(part) and hash(part) not in accepted]
    parts.sort(key=lambda part: (hash(part) in accepted, not _is_picture(part)))
    new = sum(hash(part) not in accepted for part in parts)
    search = _Search(model, request, parts)
    await search.run(sorted({1, new, len(parts)} - {0}) if parts else ())
    if not search.replies:
        raise error
    whole = _Search(model, request, ())
    await whole.run([0] if search.found else ())
    replies = [*search.replies, *whole.replies]
    spent = sum((reply.usage for reply in replies), Usage())
    # What is answered after all was not refused for its content.
    return replace(replies[-1], usage=spent), [] if whole.replies else search.found


def _digest(part: str) -> str:
    return hashlib.sha256(_NUMBER.sub("", part, 1).encode("utf-8", "replace")).hexdigest()[:16]


def _is_picture(part: str) -> bool:
    return part.startswith("data:image/")


def _parts(request: ModelRequest) -> list[str]:
    """Return what can be left out of a request, the oldest first."""
    found: list[str] = []
    _without(request, lambda part: bool(found.append(part)))  # type: ignore[func-returns-value]
    return found


def _without(request: ModelRequest, refused: Callable[[str], bool]) -> ModelRequest:
    """Return a request with a line in the place of each refused part.

    Parts are a tool, a picture, a call's arguments, a message of the conversation; else a line.
    """
    tools = [tool for tool in request.tools if not refused(tool.description)]
    messages = _changed(list(request.messages), "", "", request, refused)
    tail_length = request.tail_length if messages[-1] == request.messages[-1] else 0
    return replace(request, tools=tools, messages=messages, tail_length=tail_length)


def _changed(
    value: Any, key: str, role: str, request: ModelRequest, refused: Callable[[str], bool]
) -> Any:
    if isinstance(value, list):
        return [_changed(one, key, role, request, refused) for one in value]
    if isinstance(value, dict):
        if value.get("type") == "image_url" and refused(value["image_url"]["url"]):
            return {"type": "text", "text": _PICTURE}
        role = value.get("role", role)
        return {name: _changed(one, name, role, request, refused) for name, one in value.items()}
    if key == "arguments":
        return "{}" if refused(value) else value
    if key not in ("content", "text") or not value:
        return value
    head, mark, tail = value.partition(_TAIL)
    whole = role in ("assistant", "tool") or head in request.sources
    # The tail is older than the newest message, before which it would be suspected.
    told = _changed_lines(mark + tail if whole else value, refused)
    return (_changed_part(head, refused) if whole else "") + told


def _changed_lines(text: str, refused: Callable[[str], bool]) -> str:
    return "\n".join(_changed_part(line, refused) for line in _LINE.split(text))


def _changed_part(text: str, refused: Callable[[str], bool]) -> str:
    if not text.strip() or not refused(text):
        return text
    number = _NUMBER.match(text)
    return f"{number[0] if number else ''}{_TEXT}"
