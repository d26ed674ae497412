"""Which rows of the index have labels that are asked for. Blocking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bot.tape.index.labels import Labels, parse_labels
from bot.tape.index.tables import blob_to_text


@dataclass(frozen=True, slots=True)
class LabelFilter:
    """The numbers of labels that are asked for.

    Attributes:
        of_tape: For each tape.
        numbers: Of all these tapes.
    """

    of_tape: Mapping[int, Sequence[int]]
    numbers: frozenset[int]

    @property
    def listed(self) -> str:
        """All numbers, as SQLite's ``json_each`` takes them: there may be any number."""
        return json.dumps(sorted(self.numbers))

    def count(self, connection: sqlite3.Connection, most: int) -> int:
        """Return how many rows have them; at most one more than ``most``."""
        [found] = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM docs"
            " WHERE labels IN (SELECT value FROM json_each(?)) LIMIT ?)",
            (self.listed, most + 1),
        ).fetchone()
        return int(found)


def find_labels(
    connection: sqlite3.Connection, tapes: Collection[int], wanted: Callable[[Labels], bool]
) -> LabelFilter:
    """Return the labels on these tapes that are wanted."""
    found = {tape: [0] if wanted(Labels()) else [] for tape in tapes}
    rows = connection.execute(
        "SELECT id, tape, told FROM labels WHERE tape IN (SELECT value FROM json_each(?))",
        (json.dumps(list(tapes)),),
    )
    for number, tape, told in rows:
        if wanted(parse_labels(blob_to_text(told))):
            found[tape].append(number)
    return LabelFilter(found, frozenset(chain.from_iterable(found.values())))


def label_conditions(labels: LabelFilter | None, tape: int) -> list[tuple[str, tuple[int, ...]]]:
    """Return the conditions by which rows of a tape are looked up, to stand before a range of ids.

    One for each label: then the index of labels gives the rows in the order of their ids.
    """
    if labels is None:
        return [("id", ())]
    return [("labels = ? AND id", (number,)) for number in labels.of_tape[tape]]
