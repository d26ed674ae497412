"""``tapebot eval``: measure what is found again of what was said, and which claims on it are believed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from bot.app import make_judge, make_model
from bot.embeddings.base import Embedder
from bot.embeddings.registry import build_embedder
from bot.evals.claims import Judged, LabelledClaim, figures, judge_all, read_claims
from bot.evals.dataset import Dataset, read_dataset
from bot.evals.metrics import Answer, Measures, by_category, measured
from bot.evals.recall import ask_all
from bot.settings import Settings


def eval_recall(path: Path, as_json: bool, embeddings: str | None = None) -> int:
    """Ask the bot's search the questions of a file; print how much of the evidence it finds.

    Args:
        path: Messages and questions; see ``docs/evals.md``.
        as_json: Print one JSON object instead of a table.
        embeddings: Measure recall by meaning with this model beside recall by words alone.

    Raises:
        TapebotError: The file is not what it should be, and the text says where; or the embedding
            model fails.
        OSError: The file cannot be read.
    """
    dataset = read_dataset(path)
    embedder = build_embedder(embeddings) if embeddings else None
    answers, fused = anyio.run(_ask, dataset, embedder)
    if as_json:
        told = {
            **_figures(answers),
            "messages": len(dataset.messages),
            "without_evidence": dataset.without_evidence,
        }
        if fused:
            told["hybrid"] = {"model": embeddings, **_figures(fused)}
        print(json.dumps(told, ensure_ascii=False))
        return 0
    print(f"{len(answers)} questions on {len(dataset.messages)} messages")
    if dataset.without_evidence:
        print(f"{dataset.without_evidence} questions without evidence are left out")
    print(_table({"all": measured(answers), **by_category(answers)}))
    if fused:
        print(f"\nby words and by meaning ({embeddings})")
        print(_table({"all": measured(fused), **by_category(fused)}))
    return 0


def eval_claims(path: Path, as_json: bool, settings: Settings) -> int:
    """Run the claims of a file through judge and write gate; print how many were believed, and each wrong one.

    Args:
        path: Labelled claims; see ``docs/evals.md``.
        as_json: Print one JSON object instead.
        settings: Say who judges.

    Raises:
        TapebotError: The file is not what it should be, and the text says where.
        OSError: The file cannot be read.
    """
    claims = read_claims(path)
    judged, judge = anyio.run(_judged, claims, settings)
    told = figures(judged, judge)
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return 0
    for one in judged:
        if one.wrong:
            print(_wrong(one))
    for name in ("honest", "dishonest"):
        counts = dict(told[name])
        n = counts.pop("n")
        shares = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"{name}: {n} ({shares})")
    return 0


async def _judged(claims: Sequence[LabelledClaim], settings: Settings) -> tuple[list[Judged], str]:
    """Return what became of claims, and the name of the judge."""
    model = make_model(settings)
    judge = make_judge(settings, model)
    try:
        return await judge_all(claims, judge), judge.name if judge is not None else "none"
    finally:
        with anyio.CancelScope(shield=True):
            await model.aclose()
            if judge is not None and judge is not model:
                await judge.aclose()


def _wrong(judged: Judged) -> str:
    label = judged.label
    what = "not believed" if label.honest else "believed"
    said = " / ".join(cite.quote for cite in label.cites)
    claim = label.claim or f"{label.op}: {label.fact}"
    return f"{label.kind}, {what} ({judged.reason}): {claim!r} from {said!r}"


async def _ask(dataset: Dataset, embedder: Embedder | None) -> tuple[list[Answer], list[Answer]]:
    """Return what words find, and what both find; nothing of the latter without a model."""
    answers = await _ask_once(dataset, None)
    if embedder is None:
        return answers, []
    try:
        return answers, await _ask_once(dataset, embedder)
    finally:
        with anyio.CancelScope(shield=True):
            await embedder.aclose()


async def _ask_once(dataset: Dataset, embedder: Embedder | None) -> list[Answer]:
    with TemporaryDirectory(prefix="tapebot-eval-") as folder:
        return await ask_all(dataset, Path(folder), embedder)


def _figures(answers: Sequence[Answer]) -> dict[str, Any]:
    categories = {name: one.as_json() for name, one in by_category(answers).items()}
    return {**measured(answers).as_json(), "categories": categories}


def _table(rows: dict[str, Measures]) -> str:
    cells = [["", *next(iter(rows.values())).as_json()]]
    cells += [
        [name, *(_shown(value) for value in row.as_json().values())] for name, row in rows.items()
    ]
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
