"""Labelled questions about what was said and what changed since: how the bot answers them.

A file has one JSON object a line: what a person says, a message every three days, what they ask then, which words a
right answer has, and which it must not give as current; see ``docs/evals.md``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.bus import Sender
from bot.llm.base import Model
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock

AnswerVerdict = Literal["right", "stale", "both", "unknown", "wrong"]
"""``stale``: an old value alone, as if it held; ``both``: with the new one, in no order; ``unknown``: it says that it
does not know, which is right where nothing was said."""

_ASKED_ON = datetime(2026, 11, 24, 10, tzinfo=UTC)
_BETWEEN = timedelta(days=3)
_WORD = re.compile(r"\w+")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$|(?<=day)s$")
_BEFORE = re.compile(r"before that:|that changed\. before")


class LabelledQuestion(BaseModel):
    """A question, what was said before it, and what is right."""

    model_config = ConfigDict(extra="forbid")

    said: list[str] = Field(min_length=1)
    ask: str = Field(min_length=1)
    right: list[str]
    old: list[str] = []


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer, and what it is worth."""

    label: LabelledQuestion
    text: str
    verdict: AnswerVerdict


async def answer_all(labels: Sequence[LabelledQuestion], model: Model) -> list[GradedAnswer]:
    """Return what a bot with this model answers, each question to a bot that knows nothing else."""
    return [await _answered(one, model) for one in labels]


async def _answered(label: LabelledQuestion, model: Model) -> GradedAnswer:
    clock = ManualClock(_ASKED_ON - _BETWEEN * len(label.said))
    with TemporaryDirectory(prefix="tapebot-eval-") as folder:
        async with session_host(Path(folder), model, clock=clock) as host:
            text = ""
            for said in (*label.said, label.ask):
                sent = await host.channel.send(
                    said, chat="eval", sender=Sender("1", "Ada"), private=True
                )
                text = await host.channel.wait_for_answer(sent)
                clock.advance(_BETWEEN.total_seconds())
    return GradedAnswer(label, text, grade_answer(text, label))


def grade_answer(answer: str, label: LabelledQuestion) -> AnswerVerdict:
    """Return what an answer is worth; what was so before may be told behind what is so."""
    told = answer.casefold()
    if "don't know" in told:
        return "unknown" if label.right else "right"
    if not label.right:
        return "wrong"
    # The newest statement may name what it ends.
    current = _BEFORE.split(told, maxsplit=1)[0].replace(label.said[-1].casefold(), " ")
    has_old = any(_has(current, one) for one in label.old)
    if any(_has(told, one) for one in label.right):
        return "both" if has_old else "right"
    return "stale" if has_old else "wrong"


def _has(text: str, value: str) -> bool:
    """Say whether a text has a value in whole words; "12th" has 12."""
    said, wanted = (
        " ".join(_ORDINAL.sub("", one) for one in _WORD.findall(words))
        for words in (text, value.casefold())
    )
    return f" {wanted} " in f" {said} "


def count_verdicts(answered: Sequence[GradedAnswer]) -> dict[str, Any]:
    """Return how many answers are worth what, of changes and of other questions."""
    changes = [one.verdict for one in answered if one.label.old]
    others = [one.verdict for one in answered if not one.label.old]
    return {
        name: {"n": len(some), **dict(sorted(Counter(some).items()))}
        for name, some in (("changes", changes), ("questions", others))
    }
