"""Rebuild the prompt of a model call, split into parts with token estimates.

Pure but for ``view_of``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bot.agent.agent import Agent
from bot.agent.request_reconstruction import (
    HistoryMessage,
    ReconstructedRequest,
    no_calls_reason,
    reconstruct_request,
    unavailable_reason,
)
from bot.agent.tools.registry import Availability
from bot.agent.turn_history import ModelCall, PastTurn
from bot.core.errors import SettingsError
from bot.llm.base import ChatMessage, estimate_tokens
from bot.memory.records.attachments import IMAGE_TOKENS
from bot.tape.service import TapeService

_BLOCKS = ("file", "skills", "memory", "records", "handoff")
_OPENING = re.compile(rf"^<({'|'.join(_BLOCKS)})(?: [^>\n]*)?>\n", re.MULTILINE)
_CLOSING = {key: re.compile(rf"\n</{key}>$", re.MULTILINE) for key in _BLOCKS}
_TITLES = {
    "identity": "Identity and contract",
    "file": "Workspace files",
    "skills": "Skills",
    "memory": "Memory block",
    "records": "Summaries of what came before",
    "handoff": "Boundary state",
    "tools": "Tools",
    "history": "History",
    "newest": "Newest message",
    "steps": "Steps of this turn",
    "tail": "Tail of this step",
}
_TOOLS = "As the tools are offered now: the tape does not keep their descriptions."


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt.

    Attributes:
        key: The part's kind.
        title: The title for people.
        tokens: Estimated number of tokens.
        text: The content, if it is one text.
        messages: Indexes of its messages; 0 is the system prompt.
        note: A remark for the reader.
    """

    key: str
    title: str
    tokens: int
    text: str = ""
    messages: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class PromptView:
    """The prompt of a call, or why it cannot be shown.

    Attributes:
        call: The call; None if there is none.
        seen: The rebuilt request; None if it cannot be shown.
        parts: The parts, in the order of the prompt.
        why: Why it cannot be shown; empty if it can.
    """

    call: ModelCall | None
    seen: ReconstructedRequest | None
    parts: tuple[PromptPart, ...]
    why: str = ""

    @property
    def tokens(self) -> int:
        """Estimated number of tokens of the whole prompt."""
        return sum(part.tokens for part in self.parts)

    @property
    def cached_share(self) -> float | None:
        """Share served by the provider's cache, 0 to 1; None if it is not reported."""
        if self.call is None or not self.call.cache_reported or not self.call.usage.prompt_tokens:
            return None
        return min(1.0, self.call.usage.cached_tokens / self.call.usage.prompt_tokens)


async def view_of(tape: TapeService, agent: Agent, turn: PastTurn, step: int | None) -> PromptView:
    """Return the prompt of a turn's step, by default the last.

    Raises:
        TapeNotFound: There is no such tape.
    """
    call = turn.call(step)
    if call is None:
        told = f"There is no step {step} with an answer in this turn."
        return PromptView(None, None, (), no_calls_reason(turn) if not turn.calls else told)
    try:
        found = await reconstruct_request(tape, turn, call, agent.timezone)
    except SettingsError as error:
        return PromptView(call, None, (), unavailable_reason(error))
    return PromptView(call, found, parts_of(found, _tools(agent)))


def parts_of(found: ReconstructedRequest, tools: PromptPart | None) -> tuple[PromptPart, ...]:
    """Return the non-empty parts of a prompt, in its order."""
    parts = [*system_parts(found.system), *([tools] if tools is not None else [])]
    newest = max(
        (at for at, one in enumerate(found.history) if one.message["role"] == "user"),
        default=len(found.history),
    )
    spans = {
        "history": range(newest),
        "newest": range(newest, min(newest + 1, len(found.history))),
        "steps": range(newest + 1, len(found.history)),
    }
    for key, span in spans.items():
        tokens = sum(message_tokens(found.history[at].message) for at in span)
        if span:
            places = tuple(at + 1 for at in span)
            parts.append(PromptPart(key, _TITLES[key], tokens, messages=places))
    if found.tail:
        parts.append(PromptPart("tail", _TITLES["tail"], estimate_tokens(found.tail), found.tail))
    return tuple(parts)


def system_parts(prompt: str) -> list[PromptPart]:
    """Return the parts of a system prompt, in its order."""
    texts: dict[str, list[str]] = {"identity": []}
    at = 0
    for key, start, end in _blocks(prompt):
        texts["identity"].append(prompt[at:start].strip())
        texts.setdefault(key, []).append(prompt[start:end])
        at = end
    texts["identity"].append(prompt[at:].strip())
    joined = {key: "\n\n".join(filter(None, found)) for key, found in texts.items()}
    return [
        PromptPart(key, _TITLES[key], estimate_tokens(text), text)
        for key, text in joined.items()
        if text
    ]


def _blocks(prompt: str) -> Iterator[tuple[str, int, int]]:
    """Yield each block's key, start and end."""
    unclosed: set[str] = set()
    at = 0
    for opening in _OPENING.finditer(prompt):
        if opening.start() < at or opening[1] in unclosed:
            continue
        closing = _CLOSING[opening[1]].search(prompt, opening.end())
        if closing is None:
            unclosed.add(opening[1])
        else:
            yield opening[1], opening.start(), closing.end()
            at = closing.end()


def message_tokens(message: ChatMessage) -> int:
    """Return the estimated number of tokens of a message."""
    calls = message.get("tool_calls")
    words = f"{text_of(message)}{json.dumps(calls, ensure_ascii=False) if calls else ''}"
    return estimate_tokens(words) + IMAGE_TOKENS * len(images_of(message))


def text_of(message: ChatMessage) -> str:
    """Return a message's text."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")
    return str(content or "")


def images_of(message: ChatMessage) -> list[str]:
    """Return the references that stand for a message's images."""
    content = message.get("content")
    parts: Sequence[Any] = content if isinstance(content, list) else []
    return [str(part["image_url"]["url"]) for part in parts if part.get("type") == "image_url"]


def message_at(found: ReconstructedRequest, place: int) -> HistoryMessage:
    """Return a message of the history by its index in the prompt; 0 is the system prompt."""
    return found.history[place - 1]


def _tools(agent: Agent) -> PromptPart | None:
    offered = agent.tools.available_specs(Availability(problems=True, skills=True))
    if not agent.model.profile.tools or not offered:
        return None
    told = json.dumps(
        [[one.name, one.description, one.parameters] for one in offered], ensure_ascii=False
    )
    names = "\n".join(f"{one.name}: {one.description}" for one in offered)
    return PromptPart("tools", _TITLES["tools"], estimate_tokens(told), names, note=_TOOLS)
