"""Names that ``bot.tape.stores.postgres`` imports until it searches in this index; they do nothing."""

from __future__ import annotations

from typing import Any

KNOWN: Any = None
MAX_CORRECTIONS: Any = None
MAX_GUESSES: Any = None
beginnings: Any = None
max_edits: Any = None
rank_corrections: Any = None
