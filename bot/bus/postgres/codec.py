"""How keys and messages are written in the database.

Rule 1: everything is ASCII: text of people may hold zeros and lone surrogates, which PostgreSQL's own
    text and JSON types refuse.
Rule 2: a key is readable where it is short; a very long one, which no index takes, is its digest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from bot.bus.messages import (
    Activity,
    Address,
    Answer,
    Button,
    DeliveryReport,
    Outbound,
    OutgoingFile,
    Partial,
)

_LONGEST_KEY = 800
# No escape of JSON begins like this.
_DIGEST = "\\h"

_KINDS: dict[str, type[Answer | Partial | Activity]] = {
    "answer": Answer,
    "partial": Partial,
    "activity": Activity,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_key(text: str) -> str:
    """Return a session's key or a platform's id as the database has it."""
    escaped = json.dumps(text)[1:-1]
    if len(escaped) <= _LONGEST_KEY:
        return escaped
    return _DIGEST + hashlib.sha256(escaped.encode()).hexdigest()


def decode_key(written: str) -> str | None:
    """Return what a key was made of; None where only its digest is known."""
    return None if written.startswith(_DIGEST) else str(json.loads(f'"{written}"'))


def coalescing_key(outbound: Partial | Activity) -> str:
    """Return what a newer partial or activity takes the place of."""
    return stream_coalescing_key(outbound.stream) if isinstance(outbound, Partial) else "activity"


def stream_coalescing_key(stream: str) -> str:
    """Return the slot of a stream's partials."""
    return f"partial:{encode_key(stream)}"


def encode(outbound: Outbound) -> str:
    """Return what goes to a channel as text."""
    values = _values(outbound)
    if isinstance(outbound, Answer):
        values["buttons"] = [[one.label, one.command] for one in outbound.buttons]
        values["files"] = [[one.name, str(one.path)] for one in outbound.files]
    values["address"] = [*_address(outbound.address)]
    return json.dumps({"kind": _NAMES[type(outbound)], **values})


def decode(text: str) -> Outbound:
    """Return what ``encode`` was given."""
    values: dict[str, Any] = json.loads(text)
    kind = _KINDS[values.pop("kind")]
    values["address"] = Address(*values["address"])
    if "shown" in values:
        values["shown"] = tuple(values["shown"])
    if kind is Answer:
        values["buttons"] = tuple(Button(*one) for one in values["buttons"])
        values["files"] = tuple(OutgoingFile(name, Path(path)) for name, path in values["files"])
    return kind(**values)


def encode_report(report: DeliveryReport) -> str:
    """Return a delivery report as text."""
    return json.dumps(_values(report))


def decode_report(text: str) -> DeliveryReport:
    """Return what ``encode_report`` was given."""
    values: dict[str, Any] = json.loads(text)
    values["platform_ids"] = tuple(values["platform_ids"])
    return DeliveryReport(**values)


def _values(of: Outbound | DeliveryReport) -> dict[str, Any]:
    return {each.name: getattr(of, each.name) for each in fields(of)}


def _address(address: Address) -> tuple[str, str, str | None]:
    return address.channel, address.chat_id, address.topic
