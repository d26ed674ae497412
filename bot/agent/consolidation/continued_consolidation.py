"""Consolidate at the end of the conversation's own prompt, which the provider's cache serves.

A consolidation with a prompt of its own reads each message once more at the full price. Here the model
sees what it saw in the last turn, and then what to do. It quotes, since messages in a conversation have no
numbers; the messages that it quotes are found here, and checked like any others.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import anyio.to_thread
from pydantic import BaseModel, Field

from bot.agent.cached_prompt import CachedPrompt
from bot.agent.consolidation.answer_tool import UnusableAnswer, read_answer
from bot.agent.consolidation.policy import EntryRange
from bot.agent.consolidation.prompts import (
    Citation,
    FactOperation,
    Operation,
    SaveMemory,
    continuing_text,
)
from bot.agent.context import render_message
from bot.agent.refusals import complete
from bot.core.errors import ContextOverflow, ModelRejected
from bot.llm.base import Model, ModelReply, Usage
from bot.memory.gate.cited_sentences import cite_quote
from bot.memory.records.conversation_entries import (
    CONVERSATION_KINDS,
    entry_tokens,
    replaced_entry_id,
)
from bot.memory.records.fact import Fact
from bot.tape.entries import TapeEntry

logger = logging.getLogger(__name__)

_CACHED_PRICE = 4
"""How many tokens that a cache serves cost no more than one that it does not."""
_BEGINNING = 80
"""Characters of a message by which the model is told where to stop."""
_MOST_CITED = 12
"""Of an operation."""
_MOST_QUOTES = 200
"""Of an answer: each is looked for in each message."""


class QuotedOperation(Operation):
    """An operation on facts whose evidence is quotes alone."""

    evidence: list[str] = Field(default_factory=list, max_length=_MOST_CITED)


class QuotedAnswer(BaseModel):
    """A consolidation as the model writes it after the conversation."""

    history_entry: str = Field(min_length=1)
    operations: list[QuotedOperation] = Field(max_length=200)


@dataclass(frozen=True, slots=True)
class ContinuedConsolidation:
    """A consolidation that continues the conversation's prompt.

    Attributes:
        cached: The prompt.
        covered: The range of entries to consolidate.
    """

    cached: CachedPrompt
    covered: EntryRange

    def suits(self, model: Model, spoken: Sequence[TapeEntry]) -> bool:
        """Return whether a model can consolidate this way, and whether that is cheaper.

        Args:
            model: The model that consolidates.
            spoken: The entries to learn from; the prompt must show them all.
        """
        profile = model.profile
        if profile.small or not profile.tools or model.name != self.cached.model:
            return False
        shown = {entry.id for entry in self.cached.entries}
        spared = sum(map(entry_tokens, spoken))
        return (
            self.cached.tokens <= _CACHED_PRICE * spared
            and min(shown, default=0) >= self.covered.first
            and all(entry.id in shown for entry in spoken)
        )

    async def ask(
        self,
        model: Model,
        facts: Sequence[Fact],
        newer: Collection[int],
        lines: Sequence[tuple[TapeEntry, str]],
        tape: str,
    ) -> tuple[SaveMemory | None, Usage]:
        """Ask the model; return its answer, None if that cannot be used, and the usage.

        Args:
            model: The model that consolidates.
            facts: The active facts.
            newer: Numbers of the facts that rest on what was said after the range.
            lines: The messages to consolidate, each with its line.
            tape: Name of their tape.
        """
        text = continuing_text(
            facts, [line for _, line in lines], newer=newer, before=self._beginning_after()
        )
        try:
            reply = await complete(model, self.cached.continued_with(text))
        except (ContextOverflow, ModelRejected) as error:
            logger.info("The conversation of %s could not be continued: %s", tape, error)
            return None, Usage()
        answer = _read(reply)
        if answer is None:
            logger.info("The model wrote no consolidation after the conversation of %s", tape)
            return None, reply.usage
        messages = [entry for entry, _ in lines]
        operations = await anyio.to_thread.run_sync(
            self._cited, answer.operations, messages, tape, abandon_on_cancel=True
        )
        return SaveMemory(history_entry=answer.history_entry, operations=operations), reply.usage

    def _beginning_after(self) -> str:
        """Return how the first message in view after the range begins; empty if there is none."""
        following = (
            str(render_message(entry)["content"])
            for entry in self._later()
            if entry.kind == "message"
        )
        return next(following, "")[:_BEGINNING]

    def _later(self) -> list[TapeEntry]:
        return [
            entry
            for entry in self.cached.entries
            if entry.kind in CONVERSATION_KINDS
            # An edit stands in the place of what it replaces.
            and (replaced_entry_id(entry) or entry.id) > self.covered.last
        ]

    def _cited(
        self, operations: Sequence[QuotedOperation], messages: Sequence[TapeEntry], tape: str
    ) -> list[FactOperation]:
        found = (self._with_messages(one, messages, tape) for one in operations)
        return [one for one in found if one is not None]

    def _with_messages(
        self, operation: QuotedOperation, messages: Sequence[TapeEntry], tape: str
    ) -> FactOperation | None:
        """Return an operation that cites messages; None if it rests on what is consolidated later."""
        citations: list[Citation] = []
        for quote in operation.evidence:
            numbers = _numbers_of(quote, messages, tape)
            if not numbers and _numbers_of(quote, self._later(), tape):
                return None
            # Where nobody said it, the check of evidence tells so.
            citations += [
                Citation(message=number, quote=quote) for number in numbers or [len(messages)]
            ]
        told = operation.model_dump(exclude={"evidence"})
        return FactOperation(**told, evidence=citations[-_MOST_CITED:])


def _numbers_of(quote: str, messages: Sequence[TapeEntry], tape: str) -> list[int]:
    """Return the numbers of the messages with a quote: where people say it in their own words, of these alone."""
    found: list[int] = []
    own: list[int] = []
    for number, entry in enumerate(messages, start=1):
        if entry.kind == "message" and (cited := cite_quote(tape, entry, quote)) is not None:
            (own if cited.evidence.is_own_words else found).append(number)
    return own or found


def _read(reply: ModelReply) -> QuotedAnswer | None:
    """Return the JSON object of a reply; None if it is none, or was cut off."""
    if reply.tool_calls or reply.finish_reason == "length":
        return None
    text = reply.content
    try:
        answer = read_answer(QuotedAnswer, text[text.find("{") : text.rfind("}") + 1])
    except UnusableAnswer:
        return None
    quotes = sum(len(one.evidence) for one in answer.operations)
    return answer if answer.history_entry.strip() and quotes <= _MOST_QUOTES else None
