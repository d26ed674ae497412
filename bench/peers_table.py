"""The table of the compared assistants: its rows, and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from bench.report import Cell, Table, p50

OURS, OTHERS = "tapebot", ("nanobot", "bub")

Medians = Mapping[str, float]
"""Of one assistant, by row."""


@dataclass(slots=True)
class Samples:
    """What was measured of one assistant, by row, or why nothing was."""

    missing: str = ""
    taken: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: str, *samples: float) -> None:
        """Add samples."""
        self.taken.setdefault(row, []).extend(samples)

    def medians(self) -> dict[str, float]:
        """Return the medians; of what is lost, the mean."""
        return {
            row: mean(samples) if row == "lost" else p50(samples)
            for row, samples in self.taken.items()
            if samples
        }


Reached = Callable[[Medians, Sequence[Medians]], bool]
"""Says whether a row is reached, given our medians and those of the others."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the key of its samples, what a reader sees, and what is to be reached, in words and as a test."""

    key: str
    label: str
    wanted: str
    reached: Reached
    more: bool = False


def _most(key: str, bound: float) -> Reached:
    return lambda ours, _: ours[key] <= bound


def _ahead(ours: Medians, others: Sequence[Medians]) -> bool:
    faster = all(ours["start"] < one["start"] for one in others if "start" in one)
    return ours["start"] <= 900 and faster


def _flat(ours: Medians, _: Sequence[Medians]) -> bool:
    return ours["cpu_long"] <= 1.2 * ours["cpu_10"]


def _short(ours: Medians, _: Sequence[Medians]) -> bool:
    return ours["tools"] + ours["contract"] <= 1_200


TURNS = 200
"""Of which the tokens are counted; there is nothing to be reached for another number."""

ROWS = (
    Row("start", "start to the first reply, ms", "≤ 900, ahead of all", _ahead),
    Row("resident", "resident, one session, MB", "≤ 90", _most("resident", 90)),
    Row("cpu_10", "CPU of a turn, 10 messages in view, ms", "≤ 5", _most("cpu_10", 5)),
    Row("cpu_1000", "1,000 in view", "≤ 8", _most("cpu_1000", 8)),
    Row("cpu_long", "10,000 stored, 20 in view", "≤ 1.2 × that at 10", _flat),
    Row("first", "first turn after opening that tape, no index there yet, ms", "≤ 50", _most("first", 50)),
    Row("rate", "turns a second, 100 sessions", "≥ 250", lambda ours, _: ours["rate"] >= 250, more=True),
    Row("written", "written a turn, 10 messages in view, kB", "≤ 1.2", _most("written", 1.2)),
    Row("written_long", "10,000 stored, 20 in view", "≤ 1.2", _most("written_long", 1.2)),
    Row("tools", "fixed prompt (o200k tokens): tools", "≤ 1,200 in all", _short),
    Row("contract", "contract", "", _short),
    Row("sent", "tokens of {turns} turns", "≤ 1.4 M", _most("sent", 1_400_000)),
    Row("uncached", "of them, not served from a cache", "≤ 20,000", _most("uncached", 20_000)),
    Row("lost", "messages lost per kill in the middle of a turn", "0", _most("lost", 0)),
)  # fmt: skip


def peers_table(
    samples: Mapping[str, Samples], turns: int, notes: Sequence[str], names: Mapping[str, str]
) -> Table:
    """Return the table of all samples; the tokens are those of so many turns."""
    medians = {name: one.medians() for name, one in samples.items()}
    rows = [_cells(row, medians, turns) for row in ROWS]
    missing = [f"{name}: {one.missing}" for name, one in samples.items() if one.missing]
    head = (
        "",
        *(names.get(one, one) for one in samples),
        "tapebot ÷ better peer",
        "to reach",
        "reached",
    )
    return Table("tapebot beside others (medians)", head, rows, [*notes, *missing])


def _cells(row: Row, medians: Mapping[str, Medians], turns: int) -> list[Cell]:
    ours = medians[OURS]
    others = [medians[name] for name in OTHERS if name in medians]
    cells: list[Cell] = [one.get(row.key) for one in medians.values()]
    found = [one[row.key] for one in others if row.key in one]
    best = (max(found) if row.more else min(found)) if found else 0
    ratio = ours[row.key] / best if best and row.key in ours else None
    wanted, reached = row.wanted, ""
    if row.key in ("sent", "uncached") and turns != TURNS:
        wanted = ""
    elif wanted and row.key in ours:
        reached = "yes" if row.reached(ours, others) else "no"
    return [row.label.format(turns=turns), *cells, ratio, wanted, reached]
