"""Rebuild the prompt of a model call, split into parts with token estimates.

Pure but for ``prompt_view``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from bot.agent.agent import Agent
from bot.agent.request_reconstruction import (
    ReconstructedRequest,
    no_calls_reason,
    reconstruct_request,
    unavailable_reason,
)
from bot.agent.tools.registry import Availability
from bot.agent.turn_history import ModelCall, PastTurn
from bot.core.errors import SettingsError
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.inspector.reading import ReadModel
from bot.inspector.reading.turns import CallModel, TurnModel, turn_model
from bot.llm.base import ChatMessage, estimate_tokens
from bot.memory.records.attachments import IMAGE_TOKENS
from bot.tape.service import TapeService

_BLOCKS = ("file", "skills", "memory", "records", "handoff")
_OPENING = LazyPattern(rf"^<({'|'.join(_BLOCKS)})(?: [^>\n]*)?>\n", re.MULTILINE)
_CLOSING = {key: LazyPattern(rf"\n</{key}>$", re.MULTILINE) for key in _BLOCKS}
_TITLES = {
    "identity": N_("Identity and contract"),
    "file": N_("Workspace files"),
    "skills": N_("Skills"),
    "memory": N_("Memory block"),
    "records": N_("Earlier summaries"),
    "handoff": N_("Boundary state"),
    "tools": N_("Tools"),
    "history": N_("History"),
    "newest": N_("Newest message"),
    "steps": N_("Steps of this turn"),
    "tail": N_("Tail of this step"),
}
_TOOLS = N_("The current tools: the tape does not record their descriptions.")


Content = str | list[dict[str, Any]] | None
"""What a message says: a text, or parts of which some are images."""


class MessageModel(ReadModel):
    """A message of the prompt."""

    role: str
    content: Content = Field(description="As sent; an image is `image:` and its SHA-256.")
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    entries: tuple[int, ...] = Field(
        description="The entries that it was made from; empty if unknown."
    )
    tokens: int = Field(description="An estimate.")


class PromptPartModel(ReadModel):
    """A part of a prompt."""

    key: str = Field(
        description="`identity`, `file`, `skills`, `memory`, `records`, `handoff`, `tools`, "
        "`history`, `newest`, `steps` or `tail`."
    )
    title: str
    tokens: int = Field(description="Its tokens, estimated.")
    messages: tuple[int, ...] = Field(description="Indexes of its messages in `messages`.")
    note: str
    text: str = Field(exclude=True, description="Its content, if it is one text.")
    shown: tuple[MessageModel, ...] = Field(
        default=(), exclude=True, description="Its messages, without the tail."
    )


class PromptViewModel(ReadModel):
    """The prompt of one model call."""

    tape: str
    turn: TurnModel
    call: CallModel | None = Field(description="The model call; null if none was answered.")
    builder: str | None = Field(description="Name of the context builder.")
    messages: tuple[MessageModel, ...] = Field(description="In order; empty if `why` is set.")
    parts: tuple[PromptPartModel, ...]
    tokens: int = Field(
        description="Tokens of all parts, estimated; the provider's count is in `call`."
    )
    cached_share: float | None = Field(
        description="Share of the prompt from the provider's cache; null if not reported."
    )
    tail: str = Field(description="The end of the last message.")
    memory: tuple[int, int] | None = Field(description="First and last entry of the zone shown.")
    boundary: int | None = Field(description="The boundary at which the view starts.")
    erased: tuple[int, ...] = Field(description="Entries in view that have been erased since.")
    notes: tuple[str, ...] = Field(description="Other differences from what the model saw.")
    why: str = Field(description="Why it cannot be shown; empty if it can.")


async def prompt_view(
    tape: TapeService, agent: Agent, turn: PastTurn, step: int | None
) -> PromptViewModel:
    """Return the prompt of a turn's step, by default the last.

    Raises:
        TapeNotFound: There is no such tape.
    """
    call = turn.call(step)
    if call is None:
        told = _("There is no step {step} with an answer in this turn.", step=step)
        return _view(tape, turn, None, why=no_calls_reason(turn) if not turn.calls else told)
    try:
        reconstructed_request = await reconstruct_request(tape, turn, call, agent.timezone)
    except SettingsError as error:
        return _view(tape, turn, call, why=unavailable_reason(error))
    tools = _tools(agent, turn.model)
    return _view(tape, turn, call, reconstructed_request, parts_of(reconstructed_request, tools))


def _view(
    tape: TapeService,
    turn: PastTurn,
    call: ModelCall | None,
    reconstructed_request: ReconstructedRequest | None = None,
    parts: tuple[PromptPartModel, ...] = (),
    *,
    why: str = "",
) -> PromptViewModel:
    told = turn_model(turn)
    calls = {(call_model.step, call_model.at): call_model for call_model in told.calls}
    return PromptViewModel(
        tape=tape.name,
        turn=told,
        call=calls[call.step, call.at] if call is not None else None,
        builder=reconstructed_request.builder if reconstructed_request else None,
        messages=_messages(reconstructed_request) if reconstructed_request else (),
        parts=parts,
        tokens=sum(part.tokens for part in parts),
        cached_share=_cached_share(call) if call is not None else None,
        tail=reconstructed_request.tail if reconstructed_request else "",
        memory=reconstructed_request.memory if reconstructed_request else None,
        boundary=(reconstructed_request.boundary or None) if reconstructed_request else None,
        erased=reconstructed_request.erased if reconstructed_request else (),
        notes=reconstructed_request.notes if reconstructed_request else (),
        why=why,
    )


def _cached_share(call: ModelCall) -> float | None:
    if not call.cache_reported or not call.usage.prompt_tokens:
        return None
    return min(1.0, call.usage.cached_tokens / call.usage.prompt_tokens)


def _messages(reconstructed_request: ReconstructedRequest) -> tuple[MessageModel, ...]:
    made_of: list[tuple[int, ...]] = [
        (reconstructed_request.prompt,) if reconstructed_request.prompt else ()
    ]
    made_of += [history_message.entries for history_message in reconstructed_request.history]
    return tuple(map(_message, reconstructed_request.messages(), made_of))


def _message(message: ChatMessage, entries: tuple[int, ...]) -> MessageModel:
    content, calls = message.get("content"), message.get("tool_calls")
    words = f"{text_of(content)}{json.dumps(calls, ensure_ascii=False) if calls else ''}"
    return MessageModel(
        role=message["role"],
        content=content,
        tool_calls=calls,
        tool_call_id=message.get("tool_call_id"),
        entries=entries,
        tokens=estimate_tokens(words) + IMAGE_TOKENS * len(images_of(content)),
    )


def parts_of(
    reconstructed_request: ReconstructedRequest, tools: PromptPartModel | None
) -> tuple[PromptPartModel, ...]:
    """Return the non-empty parts of a prompt, in its order."""
    parts = [*system_parts(reconstructed_request.system), *([tools] if tools is not None else [])]
    newest = max(
        (
            at
            for at, history_message in enumerate(reconstructed_request.history)
            if history_message.message["role"] == "user"
        ),
        default=len(reconstructed_request.history),
    )
    spans = {
        "history": range(newest),
        "newest": range(newest, min(newest + 1, len(reconstructed_request.history))),
        "steps": range(newest + 1, len(reconstructed_request.history)),
    }
    for key, span in spans.items():
        history = [reconstructed_request.history[at] for at in span]
        message_models = tuple(
            _message(history_message.message, history_message.entries)
            for history_message in history
        )
        if span:
            tokens = sum(message_model.tokens for message_model in message_models)
            places = tuple(at + 1 for at in span)
            parts.append(
                _part(key, tokens).model_copy(update={"messages": places, "shown": message_models})
            )
    if reconstructed_request.tail:
        parts.append(
            _part("tail", estimate_tokens(reconstructed_request.tail), reconstructed_request.tail)
        )
    return tuple(parts)


def _part(key: str, tokens: int, text: str = "", note: str = "") -> PromptPartModel:
    return PromptPartModel(
        key=key, title=_(_TITLES[key]), tokens=tokens, messages=(), note=note, text=text
    )


def system_parts(prompt: str) -> list[PromptPartModel]:
    """Return the parts of a system prompt, in its order."""
    texts: dict[str, list[str]] = {"identity": []}
    at = 0
    for key, start, end in _blocks(prompt):
        texts["identity"].append(prompt[at:start].strip())
        texts.setdefault(key, []).append(prompt[start:end])
        at = end
    texts["identity"].append(prompt[at:].strip())
    joined = {key: "\n\n".join(filter(None, found)) for key, found in texts.items()}
    return [_part(key, estimate_tokens(text), text) for key, text in joined.items() if text]


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


def text_of(content: Content) -> str:
    """Return the text of a message's content."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")
    return str(content or "")


def images_of(content: Content) -> list[str]:
    """Return the references that stand for the images of a message's content."""
    parts = content if isinstance(content, list) else []
    return [str(part["image_url"]["url"]) for part in parts if part.get("type") == "image_url"]


def _tools(agent: Agent, model_name: str) -> PromptPartModel | None:
    """Return the tools that a configured model is offered, by default the agent's own model."""
    models = [preset.model for preset in agent.presets or () if preset.model.name == model_name]
    model = next(iter(models), agent.model)
    offered = agent.tools.available_specs(Availability(problems=True, skills=True))
    if not model.profile.tools or not offered:
        return None
    told = json.dumps(
        [[tool_spec.name, tool_spec.description, tool_spec.parameters] for tool_spec in offered],
        ensure_ascii=False,
    )
    names = "\n".join(f"{tool_spec.name}: {tool_spec.description}" for tool_spec in offered)
    return _part("tools", estimate_tokens(told), names, _(_TOOLS))
