"""Join streamed text and tool-call fragments into one reply.

Rule 1: fragments of text and of arguments are joined in the order of arrival.
Rule 2: a fragment belongs to the call of its index; a new id at a used index is a new call, since
    some servers number every call 0.
Rule 3: arguments stay the text that the model wrote; an object is converted to JSON text.
Rule 4: each call of the reply has an id, and no two the same.
Rule 5: text beyond the limit is cut off; if there are too many tool calls, or they are too long,
    all are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bot.core.errors import ModelRejected
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.llm.base import ToolCall
from bot.llm.bounds import MOST_ARGUMENTS, MOST_CALLS, MOST_TEXT

_SURROGATE = LazyPattern("[\ud800-\udfff]")


@dataclass(slots=True)
class _Part:
    index: int | None
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)

    def continues(self, index: int | None, call_id: str, name: str) -> bool:
        """Return whether a fragment belongs to this call."""
        if call_id and self.id and call_id != self.id:
            return False
        if index is None:
            return not name
        return index == self.index


class StreamedReply:
    """A reply, as far as it was received.

    Attributes:
        text: The text so far.
        finish_reason: The reason why the reply ended; None until it has.
    """

    def __init__(self) -> None:
        self.text = ""
        self.finish_reason: str | None = None
        self._parts: list[_Part] = []
        self._called = 0
        self._half = ""

    @property
    def is_full(self) -> bool:
        """Whether the text has reached its maximum length."""
        return len(self.text) >= MOST_TEXT

    def add_text(self, fragment: str | None) -> bool:
        """Append text up to the limit; return whether any was appended."""
        fragment = self._half + (fragment or "")
        self._half = ""
        if not fragment.isascii() and _SURROGATE.search(fragment):
            # Some servers split a character's two escapes; the second one comes with the next part.
            if "\ud800" <= fragment[-1] <= "\udbff":
                fragment, self._half = fragment[:-1], fragment[-1]
            fragment = fragment.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        fits = fragment[: MOST_TEXT - len(self.text)]
        self.text += fits
        return bool(fits)

    def add_call(self, index: int | None, call_id: str | None, name: str | None, args: Any) -> None:
        """Add a fragment of a tool call, with the fields that the provider sent.

        Args:
            index: Index of the call in the reply; None if the provider sent none.
            call_id: Id of the call; often sent with its first fragment only.
            name: Name of the tool; often sent with the first fragment only.
            args: Fragment of the arguments, as text; or all of them as an object.

        Raises:
            ModelRejected: There are too many calls, or they are too long.
        """
        call_id, name = call_id or "", name or ""
        text = arguments_text(args)
        self._called += len(call_id) + len(name) + len(text)
        _check_calls(len(self._parts), self._called)
        part = next((p for p in reversed(self._parts) if p.continues(index, call_id, name)), None)
        if part is None:
            part = _Part(index, call_id, name)
            self._parts.append(part)
        else:
            part.id = part.id or call_id
            part.name = part.name or name
        part.arguments.append(text)

    def set_finish_reason(self, reason: str | None) -> None:
        """Set the finish reason, if one was given."""
        self.finish_reason = reason or self.finish_reason

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls in the order in which they began."""
        found = ((part.id, part.name, "".join(part.arguments)) for part in self._parts)
        return tool_calls(found)


def arguments_text(arguments: Any) -> str:
    """Return a call's arguments as JSON text; text is returned unchanged."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _check_calls(count: int, characters: int) -> None:
    if count > MOST_CALLS or characters > MOST_ARGUMENTS:
        raise ModelRejected(
            Reason(
                "model_calls_too_many", most_calls=MOST_CALLS, most_arguments=f"{MOST_ARGUMENTS:,}"
            )
        )


def tool_calls(found: Iterable[tuple[str | None, str, Any]]) -> tuple[ToolCall, ...]:
    """Return calls from (id, name, arguments); make an id if one is missing or repeated.

    Raises:
        ModelRejected: There are too many calls, or they are too long.
    """
    calls: list[ToolCall] = []
    taken: set[str] = set()
    characters = 0
    for number, (given, name, arguments) in enumerate(found, 1):
        characters += len(given or "") + len(name) + len(arguments_text(arguments))
        _check_calls(number, characters)
        call_id = given or f"call_{number}"
        while call_id in taken:
            call_id = f"{call_id}_{number}"
        taken.add(call_id)
        calls.append(ToolCall(call_id, name, arguments_text(arguments)))
    return tuple(calls)


def finish_reason(given: str | None, calls: tuple[ToolCall, ...]) -> str:
    """Return the finish reason in the terms of ``ModelReply``.

    Some servers say ``stop`` although the model called tools.
    """
    if calls and given in {None, "stop", "function_call"}:
        return "tool_calls"
    return given or "stop"
