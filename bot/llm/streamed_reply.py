"""Join streamed text and tool-call fragments into one reply.

Rule 1: however a reply is cut into pieces, it is the same.
Rule 2: a fragment belongs to the call of its index, of its id, or to the newest. A name begins another
    call if the call before has arguments that it does not go on with, or if both names are tools; else it
    is the same name once more, or its next piece.
Rule 3: arguments stay the JSON object that the model wrote, also if that came twice, grew with each
    piece, was JSON in JSON, in a list or a fence; nothing is an empty object; what is none stays as it is.
Rule 4: each call of the reply has an id, and no two the same; unknown fields are kept.
Rule 5: text beyond the limit is cut off; if there are too many tool calls, or they are too long,
    all are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.core.errors import ModelRejected
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.llm.answer_text import AnswerText
from bot.llm.base import ChatMessage, ToolCall, ToolSpec
from bot.llm.bounds import MOST_ARGUMENTS, MOST_CALLS, MOST_TEXT
from bot.llm.written_calls import offered_name, read_calls, read_value, unfenced

_SURROGATE = LazyPattern("[\ud800-\udfff]")
_BLANKS = LazyPattern(r"\s*")
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class _Part:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    _depth: int = 0
    _quoted: bool = False
    _escaped: bool = False

    def add(self, text: str) -> None:
        self.pieces.append(text)
        for char in text:
            if self._escaped:
                self._escaped = False
            elif char == '"':
                self._quoted = not self._quoted
            elif self._quoted:
                self._escaped = char == "\\"
            else:
                self._depth += (char in "{[") - (char in "}]")

    def precedes(self, call_id: str, name: str, text: str, tools: frozenset[str]) -> bool:
        """Return whether a fragment begins another call than this one."""
        if not name or not self.name:
            return False
        other = bool(call_id and self.id and call_id != self.id)
        if name != self.name:
            return other or any(self.pieces) or tools.issuperset((name, self.name))
        if other and self.index is None:
            return True
        if not any(self.pieces) or self._depth or self._quoted:
            return False
        return other or (bool(text) and not self.repeats(text))

    def repeats(self, text: str) -> bool:
        """Return whether a fragment is all the arguments once more, or the first that are whole."""
        own = _objects(self.pieces)
        again = own == ["{}"] or len(_objects([*own, text])) == 1
        # What comes many times is not read many times.
        self.pieces = own if again and own else self.pieces
        return again or not own

    def call(self, name: str) -> None:
        """Take a name, or the next piece of it."""
        self.name = name if name.startswith(self.name) else self.name + name


class StreamedReply:
    """A reply, as far as it was received.

    Args:
        tools: The tools that were offered.
        bare: Whether calls may be written as text without any marks.
        held: Whether no text is shown before reasoning has ended.

    Attributes:
        answer: The text, parted from reasoning.
        finish_reason: The reason why the reply ended; None until it has.
    """

    def __init__(
        self, tools: Sequence[ToolSpec] = (), *, bare: bool = True, held: bool = False
    ) -> None:
        self._tools, self._bare = tools, bare
        self._names = frozenset(tool.name for tool in tools)
        self.answer = AnswerText(self._names if bare else (), held=held)
        self.finish_reason: str | None = None
        self._parts: list[_Part] = []
        self._called = 0
        self._half = ""

    @property
    def text(self) -> str:
        """What may be shown of the text so far."""
        return self.answer.draft

    @property
    def is_full(self) -> bool:
        """Whether the text has reached its maximum length."""
        return len(self.answer.text) >= MOST_TEXT

    def add_text(self, fragment: str | None) -> bool:
        """Append text up to the limit; return whether what may be shown changed."""
        fragment = self._half + (fragment or "")
        self._half = ""
        if not fragment.isascii() and _SURROGATE.search(fragment):
            # Some servers split a character's two escapes; the second one comes with the next part.
            if "\ud800" <= fragment[-1] <= "\udbff":
                fragment, self._half = fragment[:-1], fragment[-1]
            fragment = fragment.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        before = len(self.answer.draft)
        self.answer.add(fragment)
        return len(self.answer.draft) != before

    def add_call(self, call: Mapping[str, Any], *, whole: bool = False) -> None:
        """Add a tool call in OpenAI's form, or a fragment of one; an object may stand for the arguments' text.

        Raises:
            ModelRejected: There are too many calls, or they are too long.
        """
        function = call.get("function") or {}
        if "name" in call or "arguments" in call:
            # Some servers send a call without the object within.
            function = {"name": call.get("name"), "arguments": call.get("arguments")}
            call = {key: call[key] for key in call if key not in function}
        index = call.get("index", function.get("index"))
        call_id = str(call.get("id") or function.get("id") or "")
        name = str(function.get("name") or "")
        told = function.get("arguments")
        text = told if isinstance(told, str) else "" if told is None else _json(told)
        self._called += len(call_id) + len(name) + len(text)
        _check_calls(len(self._parts), self._called)
        part = self._part(None if whole else index, call_id, name, text)
        if part is None or (whole and not (call_id and call_id == part.id)):
            part = _Part(index)
            self._parts.append(part)
        part.id = part.id or call_id
        part.call(name)
        part.add(text)
        part.extra |= _others(call, "index", "id", "type", "function")
        if extra := _others(function, "index", "id", "name", "arguments"):
            part.extra["function"] = {**part.extra.get("function", {}), **extra}

    def _part(self, index: int | None, call_id: str, name: str, text: str) -> _Part | None:
        """Return the call that a fragment goes on with; None if it begins one."""
        newest = list(reversed(self._parts))
        numbered = (one for one in newest if index is not None and one.index == index)
        known = (one for one in newest if call_id and one.id == call_id)
        rest = newest[:1] if index is None or not (call_id or name) else []
        part = next((one for group in (numbered, known, rest) for one in group), None)
        begins = part is None or part.precedes(call_id, name, text, self._names)
        return None if begins else part

    def set_finish_reason(self, reason: str | None) -> None:
        """Set the finish reason, if one was given."""
        self.finish_reason = reason or self.finish_reason

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls in the order in which they began.

        Raises:
            ModelRejected: There are too many.
        """
        return _whole(
            (
                ToolCall(part.id, offered_name(part.name, self._names), "", part.extra),
                part.pieces,
            )
            for part in self._parts
            if part.name or any(part.pieces)
        )

    def content_and_calls(
        self, thoughts: str = "", given: Sequence[ChatMessage] = ()
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the whole answer to messages, and the calls: those that are written in it if there are no others.

        If there is neither, they may end the model's thoughts, which no mark has ended.

        Raises:
            ModelRejected: There are too many.
        """
        text, calls = self.answer.finish(), self.calls()
        bare = self._bare and not calls
        content, written = read_calls(text, self._tools, bare=bare, given=given)
        if calls:
            return content, calls
        if not text.strip() and self.finish_reason != "length":
            thoughts = (thoughts or self.answer.unended).lstrip()
            left, written = read_calls(thoughts, self._tools, bare=False, given=given)
            ended = thoughts.startswith(left)
            written = [call for call in written if ended and call.name in self._names]
        elif content and not bare:
            # A model that calls otherwise quotes what stands among words.
            return text, ()
        return content, _whole((call, [call.arguments or "{}"]) for call in written if self._tools)


def _others(value: Mapping[str, Any], *known: str) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in known and one is not None}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _objects(pieces: Sequence[str]) -> list[str]:
    """Return the different JSON objects that pieces make; none if they make anything else."""
    grown = pieces[-1:] if len(pieces) > 1 and pieces[-1].startswith(pieces[-2] or "\0") else []
    for text in ("".join(pieces), *grown):
        try:
            found = dict(_read(unfenced(text)))
        except (ValueError, RecursionError):
            continue
        return [written for same, written in found.items() if same != "{}" or len(found) == 1]
    return []


def _read(text: str) -> Iterator[tuple[str, str]]:
    """Yield each JSON object in a form to compare, and as it was written."""
    place = _after_blanks(text, 0)
    while place < len(text):
        try:
            value, end = _DECODER.raw_decode(text, place)
            written = text[place:end]
        except ValueError:
            value, end = read_value(text, place)
            written = _json(value)
        place = _after_blanks(text, end)
        while isinstance(value, str) and value.strip():
            written = unfenced(value).strip()
            value = json.loads(written)
        if isinstance(value, list) and len(value) == 1:
            value, written = value[0], _json(value[0])
        if not isinstance(value, dict) and value not in (None, "", []):
            raise ValueError("arguments are no object")
        yield (json.dumps(value, sort_keys=True), written) if value else ("{}", "{}")


def _own(name: str, arguments: str) -> str:
    """Return arguments, also if a server sent the whole call in their place."""
    if '"name"' not in arguments[:20]:
        return arguments
    try:
        told, inner = json.loads(arguments).values()
    except (ValueError, RecursionError):
        return arguments
    return _json(inner) if told == name and isinstance(inner, dict) else arguments


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _check_calls(count: int, characters: int) -> None:
    if count > MOST_CALLS or characters > MOST_ARGUMENTS:
        raise ModelRejected(
            Reason(
                "model_calls_too_many", most_calls=MOST_CALLS, most_arguments=f"{MOST_ARGUMENTS:,}"
            )
        )


def _whole(parts: Iterable[tuple[ToolCall, Sequence[str]]]) -> tuple[ToolCall, ...]:
    """Return calls with their arguments, and an id each; one is made if it is missing or repeated."""
    found = [
        replace(call, arguments=_own(call.name, arguments))
        for call, pieces in parts
        for arguments in _objects(pieces) or ["".join(pieces)]
    ]
    _check_calls(len(found), 0)
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for number, call in enumerate(found, 1):
        call_id = call.id or f"call_{number}"
        while call_id in taken:
            call_id = f"{call_id}_{number}"
        taken.add(call_id)
        calls.append(replace(call, id=call_id))
    return tuple(calls)


def finish_reason(given: str | None, calls: Sequence[ToolCall]) -> str:
    """Return the finish reason in the terms of ``ModelReply``.

    Some servers say ``stop`` although the model called tools.
    """
    if calls and given in {None, "stop", "function_call"}:
        return "tool_calls"
    return given or "stop"
