"""How good the answers of a search are. Pure.

Rule 1: recall@k of a question is the share of its evidence among the first k hits.
Rule 2: NDCG@10 is binary: a hit is evidence or it is not; the ideal answer begins with all evidence.
Rule 3: a figure of many questions is the mean of theirs; each counts alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

DEPTHS = (5, 10, 20)
_DEPTH = 10
_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a search gave for a question.

    Attributes:
        evidence: Ids of the messages that answer it, each once.
        hits: Ids of the messages found, best first.
        seconds: That the search took.
        category: The question's.
        auto_recalled: Ids of the messages that a prompt would be given for it unasked.
        conversation: Name of the conversation that it is about.
        said_by: Who said the evidence: ``person``, ``assistant`` or ``both``.
    """

    evidence: tuple[str, ...]
    hits: tuple[str, ...]
    seconds: float
    category: str | None = None
    auto_recalled: tuple[str, ...] = ()
    conversation: str = ""
    said_by: str = ""


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """Figures of some questions.

    Attributes:
        questions: How many.
        recall: By depth: mean share of the evidence among so many hits.
        recall_margin: Half the width of the 95 % interval of recall at 10: questions of one conversation count as alike.
        hit_rate: Share of the questions with any evidence among the first ten hits.
        ndcg: Mean NDCG of the first ten hits.
        auto_recalled_mean: How many messages a prompt is given unasked, by question.
        precision: Share of those that are evidence.
        p50: Median seconds of a search.
        p95: Seconds that 95 % of the searches do not exceed.
    """

    questions: int
    recall: dict[int, float]
    recall_margin: float
    hit_rate: float
    ndcg: float
    auto_recalled_mean: float
    precision: float
    p50: float
    p95: float

    def as_json(self) -> dict[str, Any]:
        """Return them by the names that other programs may rely on."""
        return {
            "questions": self.questions,
            **{f"recall@{depth}": round(value, 4) for depth, value in self.recall.items()},
            f"within@{_DEPTH}": round(self.recall_margin, 4),
            f"any@{_DEPTH}": round(self.hit_rate, 4),
            f"ndcg@{_DEPTH}": round(self.ndcg, 4),
            "unasked": round(self.auto_recalled_mean, 2),
            "precision": round(self.precision, 4),
            "p50_ms": round(1_000 * self.p50, 3),
            "p95_ms": round(1_000 * self.p95, 3),
        }


def compute_metrics(answers: Sequence[SearchAnswer]) -> SearchMetrics:
    """Return the figures of at least one answer."""
    taken = sorted(answer.seconds for answer in answers)
    return SearchMetrics(
        questions=len(answers),
        recall={depth: fmean(recall_at(answer, depth) for answer in answers) for depth in DEPTHS},
        recall_margin=_within(answers),
        hit_rate=fmean(recall_at(answer, _DEPTH) > 0 for answer in answers),
        ndcg=fmean(ndcg(answer) for answer in answers),
        auto_recalled_mean=fmean(len(answer.auto_recalled) for answer in answers),
        precision=_precision(answers),
        p50=_not_exceeded(taken, 0.5),
        p95=_not_exceeded(taken, 0.95),
    )


def grouped(
    answers: Sequence[SearchAnswer], group: Callable[[SearchAnswer], str | None]
) -> dict[str, SearchMetrics]:
    """Return the figures of each group by its name; what has none is in none."""
    groups: defaultdict[str, list[SearchAnswer]] = defaultdict(list)
    for answer in answers:
        if name := group(answer):
            groups[name].append(answer)
    return {name: compute_metrics(groups[name]) for name in sorted(groups)}


def by_category(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the figures of each category of questions."""
    return grouped(answers, lambda one: one.category)


def by_family(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the figures of each family of conversations: ``people-3`` is of the family ``people``."""
    return grouped(answers, lambda one: one.conversation.rpartition("-")[0])


def by_speaker(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the figures of what people said, of what the assistant said, and of what needs both."""
    return grouped(answers, lambda one: one.said_by)


def recall_at(answer: SearchAnswer, depth: int) -> float:
    """Return the share of the evidence that is among so many hits."""
    first = set(answer.hits[:depth])
    return sum(one in first for one in answer.evidence) / len(answer.evidence)


def _within(answers: Sequence[SearchAnswer]) -> float:
    """Return half the width of an interval that holds the mean recall at 10 of 95 in 100 such sets of conversations."""
    mean = fmean(recall_at(answer, _DEPTH) for answer in answers)
    apart: defaultdict[object, float] = defaultdict(float)
    alone = len({one.conversation for one in answers}) == 1
    for number, answer in enumerate(answers):
        apart[number if alone else answer.conversation] += recall_at(answer, _DEPTH) - mean
    spread = sum(one**2 for one in apart.values())
    return _NORMAL_95 * math.sqrt(spread) / len(answers)


def _precision(answers: Sequence[SearchAnswer]) -> float:
    """Return the share of what prompts were given unasked that is evidence."""
    given = sum(len(answer.auto_recalled) for answer in answers)
    fitting = sum(len(set(answer.auto_recalled) & set(answer.evidence)) for answer in answers)
    return fitting / given if given else 0.0


def ndcg(answer: SearchAnswer) -> float:
    """Return the discounted gain of the first ten hits, 1.0 where no order is better."""
    gain = sum(
        1 / math.log2(rank + 1)
        for rank, hit in enumerate(answer.hits[:_DEPTH], start=1)
        if hit in answer.evidence
    )
    ideal = range(1, min(_DEPTH, len(answer.evidence)) + 1)
    return gain / sum(1 / math.log2(rank + 1) for rank in ideal)


def _not_exceeded(ordered: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return ordered[math.ceil(len(ordered) * share) - 1]
