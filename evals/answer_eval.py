"""Evaluate how the bot answers labelled questions about facts and their changes.

A file has one JSON object per line: the person's statements, sent three days apart, the question,
the words of a right answer, and outdated words that it must not give as current; see
``docs/evals.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.bus import Sender
from bot.core.patterns import LazyPattern
from bot.llm.base import Model
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock

AnswerVerdict = Literal["right", "stale", "both", "unknown", "wrong"]
"""Verdict on an answer.

``stale``: only an old value, given as current. ``both``: an old and the new value, without saying
which is current. ``unknown``: the bot says that it does not know; that is ``right`` if nothing was
said.
"""

_ASKED_ON = datetime(2026, 11, 24, 10, tzinfo=UTC)
_BETWEEN = timedelta(days=3)
_WORD = LazyPattern(r"\w+")
_ORDINAL = LazyPattern(r"(?<=\d)(?:st|nd|rd|th)$|(?<=day)s$")
_BEFORE = LazyPattern(r"before that:|that changed\. before")


class LabelledQuestion(BaseModel):
    """A question with the statements before it and the expected answer."""

    model_config = ConfigDict(extra="forbid")

    said: list[str] = Field(min_length=1)
    ask: str = Field(min_length=1)
    right: list[str]
    old: list[str] = []


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer and its verdict."""

    label: LabelledQuestion
    text: str
    verdict: AnswerVerdict


async def answer_all(labels: Sequence[LabelledQuestion], model: Model) -> list[GradedAnswer]:
    """Return the bot's answers with this model; each question goes to a bot with empty memory."""
    return [await _answered(labelled_question, model) for labelled_question in labels]


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
    """Grade an answer; it may name the old value after the current one."""
    told = answer.casefold()
    if "don't know" in told:
        return "unknown" if label.right else "right"
    if not label.right:
        return "wrong"
    # The newest statement may name the value that it ends.
    current = _BEFORE.split(told, maxsplit=1)[0].replace(label.said[-1].casefold(), " ")
    has_old = any(_has(current, one) for one in label.old)
    if any(_has(told, one) for one in label.right):
        return "both" if has_old else "right"
    return "stale" if has_old else "wrong"


def _has(text: str, value: str) -> bool:
    """Return whether a text contains a value as whole words; "12th" counts as 12."""
    said, wanted = (
        " ".join(_ORDINAL.sub("", one) for one in _WORD.findall(words))
        for words in (text, value.casefold())
    )
    return f" {wanted} " in f" {said} "


def count_verdicts(answered: Sequence[GradedAnswer]) -> dict[str, Any]:
    """Return how many answers have each verdict, for changes and for other questions."""
    changes = [graded_answer.verdict for graded_answer in answered if graded_answer.label.old]
    others = [graded_answer.verdict for graded_answer in answered if not graded_answer.label.old]
    return {
        name: {"n": len(some), **dict(sorted(Counter(some).items()))}
        for name, some in (("changes", changes), ("questions", others))
    }
