"""Styled text for Telegram: entities, and how they are cut into messages.

Rule 1: entities lie inside the text, begin and end between characters, and cover no outer space.
Rule 2: the Bot API's rules of nesting hold: code holds and has no style, quotes hold no quotes
(https://core.telegram.org/bots/api#messageentity).
Rule 3: a piece has at most 100 entities, since Telegram ignores the others, and they are small
altogether, since it refuses more than about 9,500 bytes of them with ENTITIES_TOO_LONG. Neither
is documented; both are known from observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from channels.text import cut, skip_space, utf16_length, visible

MOST_ENTITIES = 100
HEAVIEST_ENTITIES = 8000
"""The most bytes of all addresses and languages of a message, with room for their envelopes."""

_ENVELOPE = 20

_BLOCK = "pre"
_WHOLE = {"code", "text_link"}


@dataclass(frozen=True, slots=True)
class Entity:
    """One styled stretch of a message, by the Bot API's names.

    Attributes:
        type: ``bold``, ``italic``, ``strikethrough``, ``spoiler``, ``code``, ``pre``,
            ``blockquote`` or ``text_link``.
        offset: Where it begins, in UTF-16 code units.
        length: How long it is, in UTF-16 code units; at least 1.
        url: The address, of a ``text_link``.
        language: The programming language, of a ``pre``.
    """

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields that the Bot API expects, without the empty ones."""
        fields: dict[str, str | int] = {
            "type": self.type,
            "offset": self.offset,
            "length": self.length,
        }
        if self.url is not None:
            fields["url"] = self.url
        if self.language is not None:
            fields["language"] = self.language
        return fields


@dataclass(frozen=True, slots=True)
class Piece:
    """What one message holds.

    Attributes:
        text: The text, never empty, within the limit, without outer white space except the
            indentation of code that it begins with.
        entities: Its styles, in the order of their offsets.
    """

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A styled stretch of the text that is not yet cut, in Python's indices."""

    type: str
    start: int
    end: int
    url: str | None = None
    language: str | None = None


def split(text: str, spans: Sequence[Span], limit: int) -> list[Piece]:
    """Return the text in pieces within the limit; a style that is cut goes on in the next piece."""
    ordered = sorted(spans, key=lambda span: (span.start, -span.end))
    found: list[Piece] = []
    start = _begin(text, 0, ordered)
    while start < len(text):
        ordered = [span for span in ordered if span.end > start]
        end = _end(text, start, ordered, limit)
        piece = _piece(text, start, end, ordered)
        if visible(piece.text):
            found.append(piece)
        start = _begin(text, end, ordered)
    return found


def _begin(text: str, index: int, spans: Sequence[Span]) -> int:
    begin = skip_space(text, index)
    for span in spans:
        if span.type == _BLOCK and span.start < begin < span.end:
            # The indentation of a line of code belongs to the code.
            return max(text.rfind("\n", index, begin) + 1, span.start, index)
    return begin


def _end(text: str, start: int, spans: Sequence[Span], limit: int) -> int:
    end = cut(text, start, limit)
    most = _affordable(spans)
    if most < len(spans) and start < spans[most].start < end:
        end = cut(text, start, utf16_length(text[start : spans[most].start]))
    if end == len(text):
        return end
    middle = start + (end - start) // 2
    for span in spans:
        if span.start >= end:
            break
        # Code that begins late goes to the next piece, so that it is cut once less.
        late = span.type == _BLOCK and span.start > middle
        if span.end > end and span.start > start and (late or span.type in _WHOLE):
            return span.start
    return end


def _affordable(spans: Sequence[Span]) -> int:
    """Return how many of the spans, from the first on, one message may have."""
    weight = 0
    for count, span in enumerate(spans[:MOST_ENTITIES]):
        weight += _ENVELOPE + len((span.url or span.language or "").encode())
        if weight > HEAVIEST_ENTITIES:
            return count
    return min(len(spans), MOST_ENTITIES)


def _piece(text: str, start: int, end: int, spans: Sequence[Span]) -> Piece:
    shown = text[start:end].rstrip()
    inside = (_clip(text, span, start, start + len(shown)) for span in spans if span.start < end)
    kept = [span for span in inside if span.start < span.end]
    kept = kept[: _affordable(kept)]
    if shown.isascii():
        return Piece(shown, tuple(_entity(s, s.start - start, s.end - s.start) for s in kept))
    entities: list[Entity] = []
    known, units = start, 0
    for span in kept:
        units += utf16_length(text[known : span.start])
        known = span.start
        entities.append(_entity(span, units, utf16_length(text[span.start : span.end])))
    return Piece(shown, tuple(entities))


def _clip(text: str, span: Span, start: int, end: int) -> Span:
    first, last = max(span.start, start), min(span.end, end)
    while first < last and text[last - 1].isspace():
        last -= 1
    while span.type != _BLOCK and first < last and text[first].isspace():
        first += 1
    if (first, last) == (span.start, span.end):
        return span
    return replace(span, start=first, end=last)


def _entity(span: Span, offset: int, length: int) -> Entity:
    return Entity(span.type, offset, length, span.url, span.language)
