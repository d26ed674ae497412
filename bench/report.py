"""Tables of figures: made in a figure's own process, printed and stored by the one that started it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure, and in which empty folder on the disk that is measured."""

    quick: bool
    work: Path

    def pick(self, full: int, quick: int) -> int:
        """Return the amount that fits."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column names the row, and a cell is None where something could not be measured."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    def render(self) -> str:
        """Return it as aligned text."""
        shown = [[show(cell) for cell in row] for row in self.rows]
        cells = [list(self.head), *[row + [""] * (len(self.head) - len(row)) for row in shown]]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.head))]
        lines = [
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.title, *(f"  {line}" for line in [*lines, *self.notes])])


def show(cell: Cell) -> str:
    """Return a cell as text: three significant digits are all that a busy machine gives."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.2f}" if abs(cell) < 10 else f"{cell:.1f}"


def markdown(table: Mapping[str, Any]) -> str:
    """Return a table, given as JSON, in Markdown."""
    head = list(table["head"])
    lines = [head, ["---"] * len(head), *([show(cell) for cell in row] for row in table["rows"])]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n".join(f"- {note}" for note in table["notes"])
    return f"{rows}\n\n{notes}" if notes else rows


def write_section(page: Path, name: str, text: str) -> None:
    """Replace what stands between the comments ``NAME: begin`` and ``NAME: end`` of a page, or raise ValueError."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, first, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"{page} has no marks of {name}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def p50(samples: Sequence[float]) -> float:
    """Return the median."""
    return float(median(samples))


def p95(samples: Sequence[float]) -> float:
    """Return the value that 95 % do not exceed."""
    ordered = sorted(samples)
    return ordered[math.ceil(len(ordered) * 0.95) - 1]


def ms(seconds: float) -> float:
    """Return milliseconds."""
    return seconds * 1_000


def us(seconds: float) -> float:
    """Return microseconds."""
    return seconds * 1_000_000
