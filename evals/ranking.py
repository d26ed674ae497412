"""Fits the weights of the search's ranking: ``python -m evals.ranking FIT... [--held-out FILE...]``.

Each file is a conversation with questions, as ``python -m evals recall`` reads them. The messages that answer a question
are told from all others by a logistic regression over ``bot.tape.index.ranking.FEATURES``; each question counts
alike. Printed are the weights, to be put there, and the recall at 10 that they reach: on each fifth of the
conversations by the weights that the other four give, and on those that are held out. Each feature has two weights:
one where words alone count, one where meaning, by the local model, counts too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from bot.llm.embeddings.base import Embedder
from bot.llm.embeddings.local import LocalEmbedder
from bot.memory.session.hybrid_search import strip_speaker_names
from bot.memory.session.vector_files import nearness
from bot.memory.session.vector_index import MAX_TEXT_LENGTH
from bot.tape.index.documents import date_terms, documents_of
from bot.tape.index.groups import Group
from bot.tape.index.ranking import (
    DATE_WORTH,
    FEATURES,
    STEP,
    RankingQuery,
    build_ranking_query,
    idf,
    match_speakers,
    read_rows,
    row_features,
)
from bot.tape.index.terms import parse_query, tokenize
from bot.tape.search import SearchQuery
from evals.dataset import Dataset, read_dataset
from evals.recall_eval import dataset_entry

Matrix = NDArray[np.float64]

_RIDGE = 100.0
"""How dear a weight is: features are alike, and without it they would play against each other."""
_STEPS = 30
_DEPTH = 10
_FOLDS = 5
_OF_MEANING = [name for name in FEATURES if name.startswith("meaning")]


@dataclass(frozen=True, slots=True)
class Example:
    """A question.

    Attributes:
        values: The features of each message, a row each.
        answers: 1.0 for each message that answers it, else 0.0.
    """

    values: Matrix
    answers: Matrix


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(prog="python -m evals.ranking", description=__doc__)
    parser.add_argument(
        "fit", nargs="+", type=Path, help="conversations that the weights are fitted to"
    )
    parser.add_argument(
        "--held-out", nargs="*", type=Path, default=[], help="others, to measure them on"
    )
    parser.add_argument(
        "--ablation", action="store_true", help="tell what is lost without each feature"
    )
    chosen = parser.parse_args()
    embedder = LocalEmbedder()
    read = {path: asyncio.run(_examples(read_dataset(path), embedder)) for path in chosen.fit}
    held = {path: asyncio.run(_examples(read_dataset(path), embedder)) for path in chosen.held_out}
    told = defaultdict[str, list[float]](list)
    for counts, hidden in (("words", _OF_MEANING), ("words and meaning", [])):
        print(counts, "cross-validated", _recall(_crossed(_named(read, hidden))))
        weights = _fitted(_named(read, hidden))
        scale = float(np.abs(weights).max())
        for name, one in zip(FEATURES, weights, strict=True):
            told[name].append(round(float(one) / scale, 2))
        print(counts, "held out", _recall(_with(_named(held, hidden), weights)))
        for left_out in FEATURES if chosen.ablation else ():
            if left_out not in hidden:
                fewer = [*hidden, left_out]
                weights = _fitted(_named(read, fewer))
                print(counts, "without", left_out, _recall(_with(_named(held, fewer), weights)))
    print(json.dumps(told))


def _named(
    read: Mapping[Path, Sequence[Example]], hidden: Collection[str]
) -> dict[str, list[Example]]:
    """Return the questions of each conversation by its name; some features are nought."""
    seen = np.array([name not in hidden for name in FEATURES])
    return {
        path.stem: [replace(one, values=one.values * seen) for one in of_one]
        for path, of_one in read.items()
    }


def _with(
    examples: Mapping[str, Sequence[Example]], weights: Matrix
) -> dict[str, tuple[Sequence[Example], Matrix]]:
    return {name: (of_one, weights) for name, of_one in examples.items()}


async def _examples(dataset: Dataset, embedder: Embedder) -> list[Example]:
    """Return the questions of a conversation."""
    vectors = np.array(
        await embedder.embed([one.text[:MAX_TEXT_LENGTH] for one in dataset.messages])
    )
    numbers: dict[Group, int] = {}
    columns = []
    for number, said in enumerate(dataset.messages):
        document = documents_of(replace(dataset_entry(said), id=number + 1))[0]
        group = numbers.setdefault(document.group, len(numbers) + 1)
        rest = (document.ts, document.length, document.terms)
        columns.append((number * STEP, number + 1, 0, group, *rest))
    groups = {number: group for group, number in numbers.items()}
    senders = {group.sender for group in numbers}
    having = Counter(term for one in columns for term in set(one[-1].split(" ")))
    places = {said.id: number for number, said in enumerate(dataset.messages)}
    found = []
    for question in dataset.questions:
        wanted = _asked(question.text, having, len(columns), senders)
        names = {term for _, name in senders for term in tokenize(name)}
        [vector] = await embedder.embed([strip_speaker_names(question.text, names)])
        near = nearness(vectors @ vector)
        wanted = replace(wanted, near={at + 1: float(one) for at, one in enumerate(near)})
        read = {row.id: row for row in read_rows(columns, groups, wanted.weights)}
        values = row_features(read.keys(), read, wanted)
        answers = np.zeros(len(columns))
        answers[[places[one] for one in question.evidence]] = 1.0
        found.append(Example(np.array([values[one] for one in sorted(values)]), answers))
    return found


def _asked(
    text: str, having: Mapping[str, int], total: int, senders: Collection[tuple[str, str]]
) -> RankingQuery:
    """Return what a question asks of a conversation, as the search does.

    Args:
        text: The question.
        having: How many messages have a term.
        total: How many there are.
        senders: Those who speak, by id and name.
    """
    wanted, speakers = match_speakers(parse_query(text).terms, senders)
    weights = {term: idf(having[term], total) for term in wanted if having[term]}
    for term in date_terms(wanted):
        if having[term]:
            weights[term] = DATE_WORTH * idf(having[term], total)
    return build_ranking_query(SearchQuery(text), weights, speakers)


def _fitted(examples: Mapping[str, Sequence[Example]]) -> Matrix:
    """Return the weights by which answers are told from other messages, by Newton's method."""
    listed = [one for of_one in examples.values() for one in of_one]
    values = np.concatenate([one.values for one in listed])
    answers = np.concatenate([one.answers for one in listed])
    # The messages that answer a question count together as much as all others.
    worth = np.concatenate([_worth(one.answers) for one in listed])
    spread = values.std(axis=0) + 1e-9
    made = np.column_stack([(values - values.mean(axis=0)) / spread, np.ones(len(values))])
    dear = np.diag([*[_RIDGE] * values.shape[1], 0.0])
    found = np.zeros(made.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-made @ found))
        slope = made.T @ (worth * (answers - likely)) - dear @ found
        bend = (made * (worth * likely * (1 - likely))[:, None]).T @ made + dear
        found += np.linalg.solve(bend, slope)
    result: Matrix = found[:-1] / spread
    return result


def _worth(answers: Matrix) -> Matrix:
    right = answers.sum()
    return np.where(answers > 0, 1 / right, 1 / (len(answers) - right))


def _crossed(
    examples: Mapping[str, Sequence[Example]],
) -> dict[str, tuple[Sequence[Example], Matrix]]:
    """Return each conversation with the weights that were fitted to the others of five parts."""
    names, found = list(examples), {}
    for part in range(_FOLDS):
        left_out = names[part::_FOLDS]
        rest = {name: examples[name] for name in names if name not in left_out}
        if left_out and rest:
            weights = _fitted(rest)
            found |= {name: (examples[name], weights) for name in left_out}
    return found


def _recall(measured: Mapping[str, tuple[Sequence[Example], Matrix]]) -> dict[str, float]:
    """Return the mean recall at 10 of each family of conversations."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for name, (examples, weights) in measured.items():
        for one in examples:
            order = np.argsort(-(one.values @ weights), kind="stable")[:_DEPTH]
            found[name.rpartition("-")[0]].append(
                float(one.answers[order].sum() / one.answers.sum())
            )
    return {name: round(fmean(found[name]), 4) for name in sorted(found)}


if __name__ == "__main__":
    main()
