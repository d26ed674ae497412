"""Find index rows by problem, layer, tag or name. Blocking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bot.tape.index.labels import Labels, parse_labels
from bot.tape.index.tables import blob_to_text


@dataclass(frozen=True, slots=True)
class LabelFilter:
    """The numbers of the labels that match a query.

    Attributes:
        of_tape: The numbers for each tape.
        numbers: The numbers for all tapes together.
    """

    of_tape: Mapping[int, Sequence[int]]
    numbers: frozenset[int]

    @property
    def listed(self) -> str:
        """All numbers as JSON for SQLite's ``json_each``, since there may be any number of them."""
        return json.dumps(sorted(self.numbers))

    def count(self, connection: sqlite3.Connection, most: int) -> int:
        """Count the rows with these labels, up to ``most + 1``."""
        [found] = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM docs"
            " WHERE labels IN (SELECT value FROM json_each(?)) LIMIT ?)",
            (self.listed, most + 1),
        ).fetchone()
        return int(found)


def read_labels(
    connection: sqlite3.Connection, tapes: Collection[int]
) -> list[tuple[int, int, Labels]]:
    """Return the number, the tape and the content of all labels on these tapes."""
    rows = connection.execute(
        "SELECT id, tape, told FROM labels WHERE tape IN (SELECT value FROM json_each(?))",
        (json.dumps(list(tapes)),),
    )
    return [(number, tape, parse_labels(blob_to_text(told))) for number, tape, told in rows]


def filter_labels(
    known: Iterable[tuple[int, int, Labels]],
    tapes: Collection[int],
    wanted: Callable[[Labels], bool],
) -> LabelFilter | None:
    """Return the labels that a predicate accepts; None if it accepts all.

    Args:
        known: What ``read_labels`` returned.
        tapes: The tapes.
        wanted: The predicate.
    """
    every = wanted(Labels())
    found = {tape: [0] if every else [] for tape in tapes}
    for number, tape, labels in known:
        if wanted(labels):
            found[tape].append(number)
        else:
            every = False
    if every:
        return None
    return LabelFilter(found, frozenset(chain.from_iterable(found.values())))


def label_conditions(labels: LabelFilter | None, tape: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the conditions that find rows of a tape, each to be followed by a range of ids.

    There is one per label: then the index on labels returns the rows ordered by id.
    """
    if labels is None:
        return [("id", ())]
    return [("labels = ? AND id", (number,)) for number in labels.of_tape[tape]]
