"""Names that ``bot.tape.stores.postgres`` imports until it searches in this index; they do nothing."""

from __future__ import annotations

from typing import Any

Labels: Any = None
has_label_filter: Any = None
labels_match: Any = None
labels_turn: Any = None
parse_labels: Any = None
serialize_labels: Any = None
