"""What PostgreSQL keeps of an entry to find it by. Pure.

The documents are those of the SQLite index: the same terms, pieces, labels and gaps between turns.
"""

from __future__ import annotations

import json
from typing import Any

from bot.tape.entries import NOT_BOUNDARY, TapeEntry
from bot.tape.index.documents import Document, documents_of
from bot.tape.index.labels import Labels, told
from bot.tape.store import HEADER

_HIGHEST = 2**63 - 1


def indexed(tape: str, entry: TapeEntry) -> dict[str, Any] | None:
    """Return what an entry is found by, as ``tapebot.put_documents`` takes it.

    Args:
        tape: The tape's name.
        entry: As it is appended; its id does not count, for it may not have one yet.

    Returns:
        Plain JSON that PostgreSQL's ``jsonb`` can hold; None where nothing is to be kept.
    """
    made: dict[str, Any] = {}
    if documents := [_kept(one) for one in documents_of(entry)]:
        made["documents"] = documents
    if (gap := _gap(tape, entry)) is not None:
        made["gap"] = gap
    return made or None


def _kept(document: Document) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "kind": document.kind,
        "spoken": document.spoken,
        "said_at": document.ts,
        "length": document.length,
        "terms": document.terms,
    }
    if any(document.sender):
        kept["speaker"] = _hex(json.dumps(document.sender, ensure_ascii=False))
    if document.labels != Labels():
        kept["label"] = _hex(told(document.labels))
    return kept


def _gap(tape: str, entry: TapeEntry) -> int | None:
    """Return what says that turns before an entry are no neighbours of those behind it.

    Returns:
        0 for one that always parts them; for an anchor the id that it points at: where that is not an
        earlier one it is none, and the anchor parts them, too.
    """
    if entry.name == HEADER and entry.data.get("session") == tape:
        return 0
    if entry.kind != "anchor" or entry.name is None or entry.name in NOT_BOUNDARY:
        return None
    points_at = entry.payload.get("entry")
    return min(points_at, _HIGHEST) if type(points_at) is int and points_at > 0 else 0


def _hex(text: str) -> str:
    """Return any text, lone surrogates and all, as digits."""
    return text.encode("utf-8", "surrogatepass").hex()
