"""Format of the inbox journal: its lines, and the fold that reads them. Pure.

Rule 1: a message is accepted once its line, which has no ``op``, is durable.
Rule 2: that a message is done may be written late, in the line of the next message: a message that is
    delivered again after a kill is recognised on its tape.
Rule 3: ``seen`` lines keep the platform ids of done messages, so that duplicates are recognised.
Rule 4: a ``compact`` line names the newest message to purge: once those up to it are done, the file
    is rewritten without their text.
Rule 5: an unreadable line is skipped; the others are kept.
Rule 6: a message's line leaves out what is as usual, and has times in milliseconds. ``in`` lines are those of files
    of an earlier version, and rows of a database, which processes of the version before read as well.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.bus.messages import (
    PERSON,
    Address,
    Attachment,
    Cause,
    ClientRequest,
    Grant,
    Inbound,
    Sender,
)
from bot.core.clock import format_time, from_milliseconds, to_milliseconds
from bot.core.errors import InvalidInbound
from bot.core.reasons import parse_reason, reason_json

_DAMAGED = (
    InvalidInbound,
    ValueError,
    KeyError,
    TypeError,
    RecursionError,
    AttributeError,
    OverflowError,
)

_USUAL: dict[str, Any] = {
    "topic": None,
    "private": True,
    "quote": None,
    "role": "owner",
    "ago": 0,
    "done": [],
}
"""Fields that a message's line leaves out, with the values that they have then."""

Key = tuple[str, str]
"""A session's key and a platform's message id."""


@dataclass(frozen=True, slots=True)
class AcceptedMessage:
    """An accepted message, with its sequence number and time of acceptance."""

    seq: int
    accepted_at: datetime
    inbound: Inbound

    @property
    def key(self) -> Key:
        """The key by which duplicates are recognised."""
        return self.inbound.session, self.inbound.id


@dataclass(slots=True)
class JournalState:
    """The fold of a journal's lines.

    Attributes:
        pending: Accepted messages that are not done, by sequence number, in order.
        seen: Keys of all remembered messages, oldest first.
        seq: The newest sequence number.
        purge_through_seq: Messages up to this number leave no words in the file.
        damaged: How many lines could not be read.
    """

    pending: OrderedDict[int, AcceptedMessage] = field(default_factory=OrderedDict)
    seen: OrderedDict[Key, None] = field(default_factory=OrderedDict)
    seq: int = 0
    purge_through_seq: int = 0
    damaged: int = 0

    def read(self, data: bytes) -> None:
        """Apply a journal's lines; never raises."""
        for raw in data.split(b"\n"):
            try:
                if raw:
                    self._apply(json.loads(raw))
            except _DAMAGED:
                self.damaged += 1

    def _apply(self, line: dict[str, Any]) -> None:
        operation = line.get("op", "in")
        if operation == "in":
            for seq in line.get("done", ()):
                self.pending.pop(seq, None)
            record = _decode(line)
            self.pending[record.seq] = record
            self.seen[record.key] = None
            self.seq = max(self.seq, record.seq)
        elif operation == "done":
            for seq in line["seqs"]:
                self.pending.pop(seq, None)
        elif operation == "seen":
            self.seen[(str(line["session"]), str(line["id"]))] = None
            self.seq = max(self.seq, int(line["seq"]))
        elif operation == "compact":
            self.purge_through_seq = max(self.purge_through_seq, int(line["through"]))
        else:
            self.damaged += 1

    @property
    def done(self) -> list[Key]:
        """Keys of remembered messages that are not pending, oldest first."""
        pending = {record.key for record in self.pending.values()}
        return [key for key in self.seen if key not in pending]


def encode_in(record: AcceptedMessage) -> bytes:
    """Return an accepted message with every field, for a database."""
    return _line(**_fields(record))


def encode_accepted(record: AcceptedMessage, done: Sequence[int] = ()) -> bytes:
    """Return the line of an accepted message."""
    inbound, sender = record.inbound, record.inbound.sender
    at = to_milliseconds(record.accepted_at)
    told = {
        "seq": record.seq,
        "at": at,
        "to": inbound.session,
        "id": inbound.id,
        "from": [sender.id, sender.name, *([sender.language] if sender.language else ())],
        "text": inbound.text,
        "ago": at - to_milliseconds(inbound.sent_at),
        "private": inbound.private,
        "quote": inbound.quote,
        "role": inbound.role,
        **_rest(inbound),
        "done": list(done),
    }
    left = {
        name: value for name, value in told.items() if name not in _USUAL or value != _USUAL[name]
    }
    # Unlike a database's rows, the file may have any character, lone surrogates too.
    text = json.dumps(left, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _fields(record: AcceptedMessage) -> dict[str, Any]:
    inbound = record.inbound
    return {
        "op": "in",
        "seq": record.seq,
        "at": format_time(record.accepted_at),
        "channel": inbound.address.channel,
        "chat": inbound.address.chat_id,
        "topic": inbound.address.topic,
        "id": inbound.id,
        "sender": _sender_json(inbound.sender),
        "text": inbound.text,
        "sent": inbound.sent_at.isoformat(),
        "private": inbound.private,
        "quote": inbound.quote,
        "role": inbound.role,
        **_rest(inbound),
    }


def decode_in(raw: str | bytes) -> AcceptedMessage:
    """Parse a line of ``encode_in``.

    Raises:
        InvalidInbound: It is no such line, or names no usable session.
    """
    try:
        return _decode(json.loads(raw))
    except _DAMAGED as error:
        raise InvalidInbound(f"not an accepted message: {error}") from error


def encode_done(seqs: Iterable[int]) -> bytes:
    """Return the line that marks messages as done."""
    return _line(op="done", seqs=list(seqs))


def encode_seen(key: Key, seq: int) -> bytes:
    """Return the line that remembers a done message's id."""
    return _line(op="seen", session=key[0], id=key[1], seq=seq)


def encode_state(
    seen: Iterable[Key], pending: Iterable[AcceptedMessage], seq: int, through: int = 0
) -> bytes:
    """Return the lines of a whole journal."""
    lines = [encode_seen(key, seq) for key in seen]
    lines += [encode_accepted(record) for record in pending]
    return b"".join([*lines, _line(op="compact", through=through)] if through else lines)


def _rest(inbound: Inbound) -> dict[str, Any]:
    """Return the optional fields that are set."""
    optional = {
        "asks": None if inbound.expects_answer else False,
        "edits": inbound.edited_message_id,
        "pressed": inbound.pressed_message_id,
        "via": inbound.answer_to and inbound.answer_to.session,
        "parts": inbound.parts or None,
        "attachments": [_attachment_json(one) for one in inbound.attachments] or None,
        "cause": None if inbound.cause == PERSON else inbound.cause.as_json(),
        "client": inbound.client and inbound.client.as_json(),
        "grant": inbound.grant and inbound.grant.as_json(),
        "moved": inbound.moved_to,
        "trace": inbound.trace,
    }
    return {name: value for name, value in optional.items() if value is not None}


def _attachment_json(attachment: Attachment) -> dict[str, Any]:
    note = None if attachment.note is None else reason_json(attachment.note)
    return {**asdict(attachment), "note": note}


def _attachment(record: dict[str, Any]) -> Attachment:
    return Attachment(**{**record, "note": parse_reason(record.get("note")) or None})


def _sender_json(sender: Sender) -> dict[str, str]:
    record = {"id": sender.id, "name": sender.name}
    return {**record, "language": sender.language} if sender.language else record


def _line(**values: Any) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _decode(told: dict[str, Any]) -> AcceptedMessage:
    # Lines without a role may also date from when the console was the only channel.
    line = {**_USUAL, "sent": told["at"], **told}
    if "op" not in told:
        line |= _spelled_out(line)
    inbound = Inbound(
        address=Address(line["channel"], line["chat"], line["topic"]),
        id=str(line["id"]),
        sender=Sender(
            str(line["sender"]["id"]),
            str(line["sender"]["name"]),
            str(line["sender"].get("language", "")),
        ),
        text=str(line["text"]),
        # Earlier versions took times without a zone from plug-ins, as the machine's.
        sent_at=datetime.fromisoformat(line["sent"]).astimezone(UTC),
        private=bool(line["private"]),
        quote=_text(line["quote"]),
        role="owner" if line["role"] == "owner" else "member",
        expects_answer=bool(line.get("asks", True)),
        edited_message_id=_text(line.get("edits")),
        parts=tuple((str(one), int(begin), int(end)) for one, begin, end in line.get("parts", ())),
        attachments=tuple(map(_attachment, line.get("attachments", ()))),
        pressed_message_id=_text(line.get("pressed")),
        answer_to=None if line.get("via") is None else Address.parse(line["via"]),
        cause=Cause.from_json(line.get("cause")),
        client=ClientRequest.from_json(line.get("client")),
        grant=Grant.from_json(line.get("grant")),
        moved_to=_text(line.get("moved")),
        trace=_text(line.get("trace")),
    )
    return AcceptedMessage(int(line["seq"]), datetime.fromisoformat(line["at"]), inbound)


def _spelled_out(line: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an ``in`` line that a message's line writes shorter."""
    address, at = Address.parse(line["to"]), line["at"]
    return {
        "channel": address.channel,
        "chat": address.chat_id,
        "topic": address.topic,
        "sender": dict(zip(("id", "name", "language"), line["from"], strict=False)),
        "at": format_time(from_milliseconds(at)),
        "sent": format_time(from_milliseconds(at - line["ago"])),
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
