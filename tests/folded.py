"""Fold entries that a test has read, and keep what is folded."""

from __future__ import annotations

from bot.memory.records.fact_fold import FactFold
from bot.tape.fold_rows import FoldRow, FoldRows, encode_state


def fold_entries(entries):
    """Return the facts and compartments that entries make."""
    fold = FactFold()
    for entry in entries:
        fold.apply(entry)
    return fold


def kept(fold):
    """Return a fold as it comes back from where states are kept."""
    rows, row = FoldRows(), FoldRow("Fold", version=1, checksum=1, erasures=0)
    rows.put("tape", row, encode_state(fold), drops=0, past=False)
    return rows.get("tape", row)
