"""Encode the JSON of requests; what a long conversation's request before had is not encoded again."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, NamedTuple

_LONG = 100
"""Messages from which a conversation's encoding is kept: a few are encoded faster than they are looked for."""
_MOST_BYTES = 4 << 20
"""Of all encodings that are kept."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Encoded(NamedTuple):
    messages: list[Any]
    data: bytes


class RequestEncoder:
    """Encodes requests to one server.

    A conversation only grows at its end until its view is cut, so all but its newest messages were encoded before. What
    the system prompt and the last message say changes with each request.
    """

    def __init__(self) -> None:
        # By the identity of a conversation's first message, which the encoding holds.
        self._encoded: OrderedDict[int, _Encoded] = OrderedDict()
        self._size = 0

    def encode(self, body: dict[str, Any]) -> bytes:
        """Return a request's JSON, its messages first."""
        messages = body.get("messages")
        if not isinstance(messages, list) or len(messages) < _LONG:
            return _encode(body).encode()
        first, *repeated, last = messages
        parts = (_encode(first).encode(), self._repeated(repeated), _encode(last).encode())
        rest = _encode({name: value for name, value in body.items() if name != "messages"})
        return b'{"messages":[%b]%b' % (b",".join(parts), _following(rest).encode())

    def _repeated(self, messages: list[Any]) -> bytes:
        known = self._encoded.pop(id(messages[0]), None)
        data, count = b"", 0
        if known is not None:
            self._size -= len(known.data)
            if messages[: len(known.messages)] == known.messages:
                data, count = known.data, len(known.messages)
        if count < len(messages):
            fresh = _encode(messages[count:])[1:-1].encode()
            data = b"%b,%b" % (data, fresh) if data else fresh
        self._encoded[id(messages[0])] = _Encoded(messages, data)
        self._size += len(data)
        while self._size > _MOST_BYTES:
            _unused, oldest = self._encoded.popitem(last=False)
            self._size -= len(oldest.data)
        return data


def _following(rest: str) -> str:
    """Return the members of an object as they follow others in one, with its end."""
    return "}" if rest == "{}" else f",{rest[1:]}"
