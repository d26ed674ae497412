"""Encode keys and messages for the database. Pure.

Rule 1: everything is ASCII: people's text may contain NUL and lone surrogates, which PostgreSQL's
    text and JSON types refuse.
Rule 2: a short key stays readable; one too long for an index is replaced by its digest.
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
    PartialAnswer,
)
from bot.core.errors import InvalidInbound
from bot.core.reasons import parse_reason, reason_json

_LONGEST_KEY = 800
# No JSON escape begins like this.
_DIGEST = "\\h"

_KINDS: dict[str, type[Answer | PartialAnswer | Activity]] = {
    "answer": Answer,
    "partial": PartialAnswer,
    "activity": Activity,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_key(text: str) -> str:
    """Encode a session's key or a platform's id for the database."""
    escaped = json.dumps(text)[1:-1]
    if len(escaped) <= _LONGEST_KEY:
        return escaped
    return _DIGEST + hashlib.sha256(escaped.encode()).hexdigest()


def decode_key(written: str) -> str | None:
    """Decode a key; None if only its digest was stored."""
    return None if written.startswith(_DIGEST) else str(json.loads(f'"{written}"'))


def coalescing_key(outbound: PartialAnswer | Activity) -> str:
    """Return the key by which a newer partial or activity replaces an older one."""
    return (
        stream_coalescing_key(outbound.stream)
        if isinstance(outbound, PartialAnswer)
        else "activity"
    )


def stream_coalescing_key(stream: str) -> str:
    """Return the coalescing key of a stream's partials."""
    return f"partial:{encode_key(stream)}"


def encode(outbound: Outbound) -> str:
    """Encode an outbound item as JSON."""
    values = _values(outbound)
    if isinstance(outbound, Answer):
        values["buttons"] = [
            [button.label, button.command, button.id] for button in outbound.buttons
        ]
        values["files"] = [
            [outgoing_file.name, str(outgoing_file.path)] for outgoing_file in outbound.files
        ]
    values["address"] = [*_address(outbound.address)]
    return json.dumps({"kind": _NAMES[type(outbound)], **values})


def decode(text: str) -> Outbound:
    """Decode an outbound item from ``encode``."""
    values: dict[str, Any] = json.loads(text)
    kind = _KINDS[values.pop("kind")]
    values["address"] = Address(*values["address"])
    if "sent_message_ids" in values:
        values["sent_message_ids"] = tuple(values["sent_message_ids"])
    if kind is Answer:
        values["buttons"] = tuple(Button(*one) for one in values["buttons"])
        values["files"] = tuple(OutgoingFile(name, Path(path)) for name, path in values["files"])
    return kind(**values)


def encode_report(report: DeliveryReport) -> str:
    """Encode a delivery report as JSON."""
    error = None if report.error is None else reason_json(report.error)
    return json.dumps(_values(report) | {"error": error})


def decode_report(text: str) -> DeliveryReport:
    """Decode a delivery report from ``encode_report``.

    Raises:
        InvalidInbound: It is no such text.
    """
    try:
        values: dict[str, Any] = json.loads(text)
        values["platform_ids"] = tuple(values["platform_ids"])
        if values.get("error") is not None:
            values["error"] = parse_reason(values["error"])
        return DeliveryReport(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInbound(f"not a delivery report: {error}") from error


def _values(item: Outbound | DeliveryReport) -> dict[str, Any]:
    return {each.name: getattr(item, each.name) for each in fields(item)}


def _address(address: Address) -> tuple[str, str, str | None]:
    return address.channel, address.chat_id, address.topic
