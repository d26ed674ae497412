"""Measure recall, the gate's judgement of claims, and answers: ``python -m evals KIND FILE``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio

from bot.agent.notebook import NotebookModel
from bot.core.errors import TapebotError
from bot.llm.base import Model
from bot.llm.embeddings.base import Embedder
from bot.llm.embeddings.registry import build_embedder
from bot.runtime.app import make_judge, make_model
from bot.runtime.settings import Settings, export_dotenv, load_settings
from evals.answer_eval import GradedAnswer, LabelledQuestion, answer_all, count_verdicts
from evals.change_eval import (
    JudgedChange,
    LabelledChange,
    change_statistics,
    has_changes,
    judge_changes,
)
from evals.claim_eval import JudgedClaim, LabelledClaim, claim_statistics, judge_all
from evals.dataset import Dataset, read_dataset
from evals.labels import read_labels
from evals.metrics import (
    SearchAnswer,
    SearchMetrics,
    by_category,
    by_family,
    by_speaker,
    compute_metrics,
)
from evals.notes_eval import NOTES_FILES, NOTES_VERDICTS, NotesLine, answer_notes
from evals.recall_eval import ask_all

Judged = TypeVar("Judged")


def eval_recall(paths: Sequence[Path], as_json: bool, embeddings: str | None = None) -> int:
    """Run the questions of datasets through the bot's search; print how much evidence it finds.

    Raises:
        TapebotError: A file is malformed (the text says where), or the embedding model fails.
        OSError: A file cannot be read.
    """
    datasets = {path.stem: read_dataset(path) for path in paths}
    embedder = build_embedder(embeddings) if embeddings else None
    answers, fused = anyio.run(_ask, datasets, embedder)
    messages = sum(len(dataset.messages) for dataset in datasets.values())
    left_out = sum(dataset.without_evidence for dataset in datasets.values())
    if as_json:
        told = {**_figures(answers), "messages": messages, "without_evidence": left_out}
        if fused:
            told["hybrid"] = {"model": embeddings, **_figures(fused)}
        print(json.dumps(told, ensure_ascii=False))
        return 0
    print(f"{len(answers)} questions on {messages} messages")
    if left_out:
        print(f"{left_out} questions without evidence are skipped")
    print(_tables(answers))
    if fused:
        print(f"\nby words and by meaning ({embeddings})")
        print(_tables(fused))
    return 0


def eval_claims(path: Path, as_json: bool, settings: Settings, *, oracle: bool = False) -> int:
    """Run labelled claims or changes through judge and write gate; print counts, and what came out wrong.

    Args:
        path: The labelled claims, or changes of facts.
        as_json: Whether to print one JSON object.
        settings: Settings of the judge.
        oracle: Whether the labels themselves judge.

    Raises:
        TapebotError: The file is malformed; the text says where.
        OSError: The file cannot be read.
    """
    if has_changes(path):
        changes = read_labels(path, LabelledChange)
        if oracle:
            changed, judge = anyio.run(judge_changes, changes, "oracle"), "oracle"
        else:
            changed, judge = anyio.run(_judged, partial(judge_changes, changes), settings)
        return _print_changes(changed, judge, as_json)
    claims = read_labels(path, LabelledClaim)
    if oracle:
        judged, judge = anyio.run(judge_all, claims, "oracle"), "oracle"
    else:
        judged, judge = anyio.run(_judged, partial(judge_all, claims), settings)
    told = claim_statistics(judged, judge)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for judged_claim in judged:
        if judged_claim.wrong:
            print(_wrong(judged_claim))
    _print_counts({name: told[name] for name in ("honest", "dishonest")})
    return 0


def eval_answers(path: Path, as_json: bool, settings: Settings) -> int:
    """Ask the bot labelled questions; print counts, and each answer that is not right.

    Raises:
        TapebotError: The file is malformed; the text says where.
        OSError: The file cannot be read.
    """
    answered = anyio.run(_answered, read_labels(path, LabelledQuestion), settings)
    told = count_verdicts(answered)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for graded_answer in answered:
        if graded_answer.verdict != "right":
            said = " / ".join(graded_answer.label.said)
            print(
                f"{graded_answer.verdict}: {said!r}, {graded_answer.label.ask!r}: {graded_answer.text!r}"
            )
    _print_counts(told)
    return 0


def eval_notes(paths: Sequence[Path], as_json: bool) -> int:
    """Ask the program without a model about notes; print counts, and each answer that is not right.

    Raises:
        TapebotError: A file is malformed; the text says where.
        OSError: A file cannot be read.
    """
    counted: dict[str, dict[str, int]] = {}
    for path in paths:
        answers = anyio.run(answer_notes, read_labels(path, NotesLine), NotebookModel())
        verdicts = Counter(answer.verdict for answer in answers)
        counted[path.stem] = {"n": len(answers), **{one: verdicts[one] for one in NOTES_VERDICTS}}
        for answer in answers:
            if answer.verdict != "right" and not as_json:
                print(f"{answer.verdict}: {answer.label.ask!r}: {answer.text!r}")
    if as_json:
        print(json.dumps(counted, ensure_ascii=False))
    else:
        _print_counts(counted)
    return 0


async def _answered(labels: Sequence[LabelledQuestion], settings: Settings) -> list[GradedAnswer]:
    model = make_model(settings)
    try:
        return await answer_all(labels, model)
    finally:
        with anyio.CancelScope(shield=True):
            await model.aclose()


async def _judged(
    judging: Callable[[Model | None], Awaitable[list[Judged]]], settings: Settings
) -> tuple[list[Judged], str]:
    """Return what was judged, and the name of the judge."""
    model = make_model(settings)
    judge = make_judge(settings, model)
    try:
        return await judging(judge), judge.name if judge is not None else "none"
    finally:
        with anyio.CancelScope(shield=True):
            await model.aclose()
            if judge is not None and judge is not model:
                await judge.aclose()


def _print_changes(judged: Sequence[JudgedChange], judge: str, as_json: bool) -> int:
    """Print counts, and each change after which memory says what does not hold, or less than holds."""
    told = change_statistics(judged, judge)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for one in judged:
        if one.outcome in ("stale", "lost"):
            said = " / ".join(one.label.said)
            print(f"{one.label.kind}, {one.outcome}: {said!r}: {' / '.join(one.believed)!r}")
    _print_counts({"changes": told["changes"]})
    return 0


def _print_counts(told: Mapping[str, Mapping[str, int]]) -> None:
    """Print the number of labels of each kind, and their outcomes."""
    for name, counts in told.items():
        shares = ", ".join(f"{count} {what}" for what, count in counts.items() if what != "n")
        print(f"{name}: {counts['n']} ({shares})")


def _wrong(judged: JudgedClaim) -> str:
    label = judged.label
    what = "not believed" if label.honest else "believed"
    said = " / ".join(cite.quote for cite in label.cites)
    claim = label.claim or f"{label.op}: {label.fact}"
    return f"{label.kind}, {what} ({judged.reason}): {claim!r} from {said!r}"


async def _ask(
    datasets: Mapping[str, Dataset], embedder: Embedder | None
) -> tuple[list[SearchAnswer], list[SearchAnswer]]:
    """Return the results of search by words, and of hybrid search if there is an embedder."""
    answers = await _ask_once(datasets, None)
    if embedder is None:
        return answers, []
    try:
        return answers, await _ask_once(datasets, embedder)
    finally:
        with anyio.CancelScope(shield=True):
            await embedder.aclose()


async def _ask_once(
    datasets: Mapping[str, Dataset], embedder: Embedder | None
) -> list[SearchAnswer]:
    answers: list[SearchAnswer] = []
    for name, dataset in datasets.items():
        with TemporaryDirectory(prefix="tapebot-eval-") as folder:
            answers += await ask_all(dataset, Path(folder), embedder, name=name)
    return answers


_GROUPS = {"categories": by_category, "families": by_family, "said_by": by_speaker}


def _figures(answers: Sequence[SearchAnswer]) -> dict[str, Any]:
    groups = {
        key: {name: search_metrics.as_json() for name, search_metrics in group(answers).items()}
        for key, group in _GROUPS.items()
    }
    return {**compute_metrics(answers).as_json(), **groups}


def _tables(answers: Sequence[SearchAnswer]) -> str:
    rows = [("all", compute_metrics(answers))]
    for group in _GROUPS.values():
        rows += group(answers).items()
    return _table(rows)


def _table(rows: Sequence[tuple[str, SearchMetrics]]) -> str:
    cells = [["", *rows[0][1].as_json()]]
    cells += [[name, *(_shown(value) for value in row.as_json().values())] for name, row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    recall = kinds.add_parser("recall", help="what search finds for the questions in files")
    recall.add_argument("files", metavar="FILE", type=Path, nargs="+")
    recall.add_argument("--embeddings", metavar="MODEL", help="also by meaning: local, or a model")
    claims = kinds.add_parser("claims", help="which labelled claims become facts")
    claims.add_argument("file", type=Path)
    claims.add_argument(
        "--judge", metavar="MODEL", help="model that judges, none, or oracle: the labels"
    )
    answers = kinds.add_parser("answers", help="answers about facts that have changed")
    answers.add_argument("file", type=Path)
    notes = kinds.add_parser("notes", help="answers without a model about notes")
    notes.add_argument("files", metavar="FILE", type=Path, nargs="*", default=NOTES_FILES)
    for one in (recall, claims, answers, notes):
        one.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an evaluation; return the exit status."""
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.kind == "recall":
            return eval_recall(chosen.files, chosen.json, chosen.embeddings)
        if chosen.kind == "notes":
            return eval_notes(chosen.files, chosen.json)
        export_dotenv()
        settings = load_settings()
        if chosen.kind == "answers":
            return eval_answers(chosen.file, chosen.json, settings)
        if chosen.judge == "oracle":
            return eval_claims(chosen.file, chosen.json, settings, oracle=True)
        if chosen.judge is not None:
            settings = settings.model_copy(update={"judge_model": chosen.judge})
        return eval_claims(chosen.file, chosen.json, settings)
    except (TapebotError, OSError) as error:
        print(f"evals: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
