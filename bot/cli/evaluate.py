"""``tapebot eval``: measure how well what was said is found again."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from bot.evals.dataset import read_dataset
from bot.evals.metrics import Measures, by_category, measured
from bot.evals.recall import ask_all


def eval_recall(path: Path, as_json: bool) -> int:
    """Ask the bot's search the questions of a file; print how much of the evidence it finds.

    Args:
        path: Messages and questions; see ``docs/evals.md``.
        as_json: Print one JSON object instead of a table.

    Raises:
        TapebotError: The file is not what it should be; the text says where.
        OSError: The file cannot be read.
    """
    dataset = read_dataset(path)
    with TemporaryDirectory(prefix="tapebot-eval-") as folder:
        answers = anyio.run(ask_all, dataset, Path(folder))
    total, categories = measured(answers), by_category(answers)
    if as_json:
        told = {
            **total.as_json(),
            "messages": len(dataset.messages),
            "without_evidence": dataset.without_evidence,
            "categories": {name: one.as_json() for name, one in categories.items()},
        }
        print(json.dumps(told, ensure_ascii=False))
        return 0
    print(f"{total.questions} questions on {len(dataset.messages)} messages")
    if dataset.without_evidence:
        print(f"{dataset.without_evidence} questions without evidence are left out")
    print(_table({"all": total, **categories}))
    return 0


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
