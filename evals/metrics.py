"""Recall, NDCG and latency of search results. Pure.

Rule 1: recall@k of a question is the share of its evidence among the first k hits.
Rule 2: NDCG@10 is binary: a hit is evidence or it is not; the ideal result begins with all
    evidence.
Rule 3: a metric of several questions is the mean over the questions.
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
    """Search results for a question.

    Attributes:
        evidence: Ids of the messages that answer it, each once.
        hits: Ids of the messages found, best first.
        seconds: Duration of the search.
        category: Category of the question.
        auto_recalled: Ids of the messages that automatic recall would add to a prompt.
        conversation: Name of the conversation that it is about.
        said_by: Speaker of the evidence: ``person``, ``assistant`` or ``both``.
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
    """Metrics over a set of questions.

    Attributes:
        questions: Number of questions.
        recall: Mean recall by depth.
        recall_margin: Half the width of the 95 % confidence interval of recall at 10, clustered by
            conversation.
        hit_rate: Share of the questions with any evidence among the first ten hits.
        ndcg: Mean NDCG of the first ten hits.
        auto_recalled_mean: Mean number of automatically recalled messages per question.
        precision: Share of those that are evidence.
        p50: Median seconds of a search.
        p95: 95th percentile of the seconds of a search.
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
        """Return the metrics under stable names for other programs."""
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
    """Return the metrics of at least one answer."""
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
    """Return the metrics of each group by name; answers without a group are left out."""
    groups: defaultdict[str, list[SearchAnswer]] = defaultdict(list)
    for answer in answers:
        if name := group(answer):
            groups[name].append(answer)
    return {name: compute_metrics(groups[name]) for name in sorted(groups)}


def by_category(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the metrics of each category of questions."""
    return grouped(answers, lambda search_answer: search_answer.category)


def by_family(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the metrics of each family of conversations: ``people-3`` belongs to ``people``."""
    return grouped(answers, lambda search_answer: search_answer.conversation.rpartition("-")[0])


def by_speaker(answers: Sequence[SearchAnswer]) -> dict[str, SearchMetrics]:
    """Return the metrics by speaker of the evidence: person, assistant or both."""
    return grouped(answers, lambda search_answer: search_answer.said_by)


def recall_at(answer: SearchAnswer, depth: int) -> float:
    """Return the share of the evidence among the first ``depth`` hits."""
    first = set(answer.hits[:depth])
    return sum(one in first for one in answer.evidence) / len(answer.evidence)


def _within(answers: Sequence[SearchAnswer]) -> float:
    """Return half the width of the 95 % confidence interval of mean recall at 10.

    Questions of one conversation form a cluster; with one conversation each question is its own.
    """
    mean = fmean(recall_at(answer, _DEPTH) for answer in answers)
    apart: defaultdict[object, float] = defaultdict(float)
    alone = len({search_answer.conversation for search_answer in answers}) == 1
    for number, answer in enumerate(answers):
        apart[number if alone else answer.conversation] += recall_at(answer, _DEPTH) - mean
    spread = sum(one**2 for one in apart.values())
    return _NORMAL_95 * math.sqrt(spread) / len(answers)


def _precision(answers: Sequence[SearchAnswer]) -> float:
    """Return the share of automatically recalled messages that is evidence."""
    given = sum(len(answer.auto_recalled) for answer in answers)
    fitting = sum(len(set(answer.auto_recalled) & set(answer.evidence)) for answer in answers)
    return fitting / given if given else 0.0


def ndcg(answer: SearchAnswer) -> float:
    """Return the NDCG of the first ten hits; 1.0 is the best possible order."""
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
