"""The conversation's own prompt, for a request that continues it: a provider's cache serves most of it.

Rule 1: the last turn's usage shows whether the provider's cache serves this conversation; nothing is
    assumed of a model.
Rule 2: what the last turn was offered is offered again, since tools stand at a prompt's beginning.
Rule 3: that turn's prompt showed the same memory, and began with the same message.
Rule 4: nothing continues a prompt that shows results of tools with text from outside, or files, or
    that has a client's own instructions. Quoted and pasted text is checked as what it is in any prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.agent.agent import Agent
from bot.agent.context import ModelContext, RenderedMessages, add_message
from bot.agent.texts import model_language
from bot.llm.base import ChatMessage, ModelRequest, ToolSpec, Usage
from bot.memory.records.outside_text import outside_texts
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import TapeEntry

_KEPT_FOR = timedelta(minutes=4)
"""Providers keep a prompt for five minutes or longer after its last use."""


@dataclass(frozen=True, slots=True)
class LastModelCall:
    """The last call of a turn that a model answered.

    Attributes:
        model: Name of the model that was asked.
        tools: The tools that it was offered.
        usage: Usage of the call.
        at: When it was answered.
        memory: What its prompt showed of memory.
        first_in_view: Id of the first entry that was in view.
    """

    model: str
    tools: Sequence[ToolSpec]
    usage: Usage
    at: datetime
    memory: MemorySnapshot
    first_in_view: int

    def is_cached(self, now: datetime) -> bool:
        """Return whether the provider's cache served most of it, and likely still holds it."""
        served = 2 * self.usage.cached_tokens >= self.usage.prompt_tokens > 0
        return served and now - self.at < _KEPT_FOR


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A conversation's prompt that a provider's cache serves for the most part.

    Attributes:
        model: Name of the model whose provider has it.
        messages: The prompt up to now.
        tools: Its tools.
        entries: The conversation in view, which it shows.
        tokens: Tokens of the last prompt, as the provider counts.
    """

    model: str
    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec]
    entries: Sequence[TapeEntry]
    tokens: int

    def continued_with(self, text: str) -> ModelRequest:
        """Return the request of a consolidation that shows a text after the conversation."""
        messages = list(self.messages)
        add_message(messages, {"role": "user", "content": text})
        return ModelRequest(
            messages=messages,
            tools=self.tools,
            purpose="consolidation",
            tail_length=len(text),
        )


def find_cached_prompt(
    called: LastModelCall,
    agent: Agent,
    fold: SessionFold,
    prompt: str,
    rendered: RenderedMessages,
) -> CachedPrompt | None:
    """Return the conversation's prompt up to now; None if it must not be continued, or no cache serves it.

    Args:
        called: The last call that a model answered.
        agent: The model, and what builds its view.
        fold: The session's state, without hidden messages.
        prompt: The newest system prompt.
        rendered: Cache of rendered messages.
    """
    # A builder that shows anchors shows neither who spoke nor when.
    if agent.private or agent.builder.anchors:
        return None
    if not called.is_cached(agent.clock.now()):
        return None
    same = (fold.prompt_snapshot, fold.window.first_id) == (called.memory, called.first_in_view)
    if not same or not _shows_only_the_conversation(fold):
        return None
    with model_language():
        history = agent.builder.render(fold.window, rendered, ())
    return CachedPrompt(
        called.model,
        ModelContext(prompt, tuple(history)).messages(),
        called.tools,
        fold.window.conversation(),
        called.usage.prompt_tokens,
    )


def _shows_only_the_conversation(fold: SessionFold) -> bool:
    """Return whether no files and no text that tools brought from outside are in view, and no turn is open."""
    if fold.turns.open_turn is not None:
        return False
    return not any(
        "attachments" in entry.meta or (entry.kind == "tool_result" and outside_texts(entry))
        for entry in fold.window.conversation()
    )
