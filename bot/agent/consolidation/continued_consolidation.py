"""Consolidate at the end of the conversation's own prompt, which the provider's cache serves.

A consolidation with a prompt of its own reads each message once more at the full price. Here the model
sees what it saw in the last turn, and then what to do.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from bot.agent.cached_prompt import CachedPrompt
from bot.agent.consolidation.answer_tool import UnusableAnswer, read_answer
from bot.agent.consolidation.policy import EntryRange
from bot.agent.consolidation.prompts import SaveMemory, continuing_text
from bot.agent.context import render_message
from bot.agent.fact_changes import FactChange, OwnWords
from bot.agent.refusals import complete
from bot.core.errors import ContextOverflow, ModelRejected
from bot.llm.base import Model, ModelReply, Usage
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
        *,
        tape: str,
        today: date,
    ) -> tuple[SaveMemory | None, Usage]:
        """Ask the model; return its answer, None if that cannot be used, and the usage.

        Args:
            model: The model that consolidates.
            facts: The active facts.
            newer: Numbers of the facts that rest on what was said after the range.
            lines: The messages to consolidate, each with its line.
            tape: Name of their tape.
            today: The user's date.
        """
        text = continuing_text(
            facts,
            [line for _, line in lines],
            today=today,
            newer=newer,
            before=self._beginning_after(),
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
        # What it learned of messages that are consolidated later is learned then.
        later = OwnWords(tape, self._later())
        covered = OwnWords(tape, [entry for entry, _ in lines])
        changes = [one for one in answer.changes if not _rests_on(one, later, covered)]
        return SaveMemory(history_entry=answer.history_entry, changes=changes), reply.usage

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


def _rests_on(change: FactChange, later: OwnWords, covered: OwnWords) -> bool:
    """Return whether a quote of a change is in what is consolidated later, and only there."""
    return any(later.find(quote) and not covered.find(quote) for quote in change.quotes)


def _read(reply: ModelReply) -> SaveMemory | None:
    """Return the JSON object of a reply; None if it is none, or was cut off."""
    if reply.tool_calls or reply.finish_reason == "length":
        return None
    text = reply.content
    try:
        answer = read_answer(SaveMemory, text)
    except UnusableAnswer:
        return None
    return answer if answer.history_entry.strip() else None
