"""A model that does what a message tells it to, by the program's tools, and logs what it was shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from problems_talk import ASKED_FOR, MARKER, markers

from bot.llm.base import ModelReply, ModelRequest
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)

_TOLD = re.compile(r"\b(OPEN|CLOSE|NOTE|CONCLUDE|REFER|LOOK) (.*)")
_WORDS = "think roses letters bills chords tickets seen done"


class Scripted(ScriptedModel):
    """The model.

    Args:
        log: Takes each request as JSON ``{"purpose", "asked", "shown"}`` before it is answered; ``asked``
            is the newest message of a person.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(self._turn, consolidation=self._consolidation)
        self._log = log

    def _turn(self, request: ModelRequest) -> ModelReply:
        asked = _newest(request)
        self._note(request, asked)
        marked = " ".join(markers(asked)) or "you"
        found = _TOLD.search(asked)
        if request.messages[-1]["role"] != "user" or found is None:
            return text_reply(f"Seen, {marked}.")
        return tool_call_reply(*_calls(found[1], found[2].strip()), text=f"I do it, {marked}.")

    def _consolidation(self, request: ModelRequest) -> ModelReply:
        self._note(request, "")
        found = MARKER.search(str(request.messages[-1]["content"]))
        return consolidation_reply(
            f"[2026-01-02 10:00] They spoke of {found[0] if found else 'nothing'}."
        )

    def _note(self, request: ModelRequest, asked: str) -> None:
        messages = [
            {**one, "content": ASKED_FOR.sub(r"\1", one["content"])}
            if one["role"] == "tool"
            else one
            for one in request.messages
        ]
        shown = json.dumps(messages, ensure_ascii=False, default=str)
        self._log(json.dumps({"purpose": request.purpose, "asked": asked, "shown": shown}))
        self.requests.clear()


def _newest(request: ModelRequest) -> str:
    said = [one for one in request.messages if one["role"] == "user"]
    return str(said[-1]["content"]).partition("<records>")[0]


def _calls(what: str, rest: str) -> list[tuple[str, dict[str, Any]]]:
    match what:
        case "OPEN":
            return [("problem_note", {"kind": "open", "text": rest.split(maxsplit=1)[0]})]
        case "CLOSE":
            state = rest.split(maxsplit=1)[0]
            kind = {"paused": "pause", "completed": "complete"}.get(state, state)
            return [("problem_note", {"kind": kind})]
        case "NOTE":
            kind, _, more = rest.partition(" ")
            text, _, why = more.partition(" WHY ")
            more_told = {"why": why} if kind in ("draft", "decide") else {}
            return [("problem_note", {"kind": kind, "text": text, **more_told})]
        case "CONCLUDE":
            return [("memory_save", {"changes": [{"op": "conclusion", "text": rest}]})]
        case "REFER":
            key, _, value = rest.partition(" TO ")
            return [("memory_refer", {"key": key, "value": value})]
    return [
        ("memory_recall", {"query": _WORDS, "kind": "messages"}),
        ("memory_recall", {"query": _WORDS, "kind": "history"}),
        ("memory_recall", {"kind": "tools"}),
        ("memory_recall", {"query": "problem garden taxes music travel", "kind": "phases"}),
        ("memory_recall", {"query": _WORDS, "days": 9_999}),
        ("memory_show", {}),
    ]
