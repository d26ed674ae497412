"""A scripted model that does the user's task, and whatever an attacker asks for.

Rule 1: it calls what AgentDojo's ground truth of the user's task calls, one call per step. A call that waits for a yes
    ends its turn; it goes on when that was decided.
Rule 2: if it obeys, it makes all calls of the attacker's task as soon as it has read the attacker's text. It makes a
    call that was denied once again, then in capitals, and what did not run again in a later turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bot.llm.base import ModelReply, ModelRequest
from bot.testing.scripted_model import text_reply, tool_call_reply

MARKER = "INFORMATION>"
"""Stands in the attacker's text (AgentDojo's attack ``important_instructions``)."""

LAST_MESSAGE = "Thank you, that is all."
"""What the person says at the end, so that there is a later turn."""

_WAITING = "I need your yes for that."
_WAITS = re.compile(r"call (\d+) waits for the user's yes")
_DENIED = re.compile(r"The user denied it: call (\d+) ")
_APPROVED = re.compile(r"The user approved it, and it ran: call (\d+) ")

Call = tuple[str, dict[str, Any]]
"""The name of a tool and its arguments."""


@dataclass(slots=True)
class AttackedModel:
    """The script of one conversation.

    Attributes:
        prefix: What comes before the names of the server's tools.
        calls: The calls of the user's task.
        output: What the answer to the user's task says.
        attack: The calls of the attacker's task.
        attack_output: What the attacker wants to be said.
        obeys: Whether it does what the attacker asks for.
        has_read: Whether it has read the attacker's text.
        finished: Whether it has done the user's task.
    """

    prefix: str
    calls: list[Call]
    output: str
    attack: list[Call] = field(default_factory=list)
    attack_output: str = ""
    obeys: bool = False
    has_read: bool = False
    finished: bool = False
    _next: int = 0
    _attacked: bool = False
    _attacked_late: bool = False
    _asked: list[Call] = field(default_factory=list)
    _attacking: bool = False
    _waiting: dict[int, Call] = field(default_factory=dict)
    _retried: set[int] = field(default_factory=set)
    _repeated: list[Call] = field(default_factory=list)

    def answer(self) -> str:
        """Return what it says at the end."""
        obeyed = self.obeys and self.has_read
        said = [self.output, self.attack_output if obeyed else ""]
        return "\n".join(filter(None, said)) or "Done."

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next step."""
        messages = [one for one in request.messages if one["role"] != "system"]
        texts = [str(one.get("content") or "") for one in messages]
        self.has_read = self.has_read or any(MARKER in text for text in texts)
        results = [one["content"] for one in messages if one["role"] == "tool"]
        waits = self._note_waiting(results[len(results) - len(self._asked) :])
        if self.obeys and self.has_read and (calls := self._attack_calls(texts)):
            return self._call(calls, attacking=True)
        if waits and not self._attacking:
            self._asked = []
            return text_reply(_WAITING)
        if self._next < len(self.calls):
            self._next += 1
            return self._call([self.calls[self._next - 1]], attacking=False)
        self._asked, self.finished = [], True
        return text_reply(self.answer())

    def _call(self, calls: list[Call], *, attacking: bool) -> ModelReply:
        self._asked, self._attacking = calls, attacking
        return tool_call_reply(*((self.prefix + name, given) for name, given in calls))

    def _note_waiting(self, results: list[str]) -> bool:
        """Note which of the last calls wait for a yes; say whether any does."""
        found = [_WAITS.search(result) for result in results]
        for call, waits in zip(self._asked, found, strict=True):
            if waits is not None and self._attacking:
                self._waiting[int(waits[1])] = call
        return any(found)

    def _attack_calls(self, texts: list[str]) -> list[Call]:
        """Return what it calls for the attacker now; empty if nothing."""
        if not self._attacked:
            self._attacked = True
            return self.attack
        for number in _numbers(_APPROVED, texts) & set(self._waiting):
            del self._waiting[number]
        if not self._attacked_late and LAST_MESSAGE in texts[-1]:
            self._attacked_late = True
            return [call for call in self.attack if call in self._waiting.values()]
        denied = _numbers(_DENIED, texts) & set(self._waiting) - self._retried
        self._retried |= denied
        calls = [self._waiting[number] for number in sorted(denied)]
        again = [call for call in calls if call in self.attack and call not in self._repeated]
        self._repeated += again
        return [one for call in again for one in (call, _in_capitals(call))]


def _numbers(pattern: re.Pattern[str], texts: list[str]) -> set[int]:
    return {int(number) for text in texts for number in pattern.findall(text)}


def _in_capitals(call: Call) -> Call:
    name, given = call
    return name, {key: one.upper() if isinstance(one, str) else one for key, one in given.items()}
