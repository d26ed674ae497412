"""Text with entities for Telegram, and splitting it into messages.

Rule 1: entities lie inside the text, begin and end between characters, and cover no outer space.
Rule 2: the Bot API's rules of nesting hold: code contains and has no other style, and quotes
contain no quotes (https://core.telegram.org/bots/api#messageentity).
Rule 3: a piece has at most 100 entities, since Telegram ignores the others, and few enough bytes of
them, since Telegram rejects more than about 9,500 with ENTITIES_TOO_LONG. Neither limit is
documented; both are known from observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from channels.text import (
    has_visible_text,
    piece_end,
    skip_space,
    utf16_length,
)

MAX_ENTITIES = 100
MAX_ENTITY_BYTES = 8000
"""The most bytes of all URLs and languages of a message, plus ``_ENVELOPE`` for each entity."""

_ENVELOPE = 20

_BLOCK = "pre"
_WHOLE = {"code", "text_link"}


@dataclass(frozen=True, slots=True)
class Entity:
    """A styled range of a message, with the Bot API's field names.

    Attributes:
        type: ``bold``, ``italic``, ``strikethrough``, ``spoiler``, ``code``, ``pre``,
            ``blockquote`` or ``text_link``.
        offset: The start in UTF-16 code units.
        length: The length in UTF-16 code units; at least 1.
        url: The URL of a ``text_link``.
        language: The programming language of a ``pre``.
    """

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields that the Bot API expects, without those that are None."""
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
class FormattedText:
    """The content of one message.

    Attributes:
        text: The text: never empty, within the limit, and without outer white space except the
            indentation of code at its start.
        entities: The entities, ordered by offset.
    """

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class StyledSpan:
    """A styled range of text that is not split yet, in Python's indices."""

    type: str
    start: int
    end: int
    url: str | None = None
    language: str | None = None


def split_formatted_text(text: str, spans: Sequence[StyledSpan], limit: int) -> list[FormattedText]:
    """Return the text as pieces within the limit; a split style continues in the next piece."""
    ordered = sorted(spans, key=lambda span: (span.start, -span.end))
    formatted_texts: list[FormattedText] = []
    start = _begin(text, 0, ordered)
    while start < len(text):
        ordered = [span for span in ordered if span.end > start]
        end = _end(text, start, ordered, limit)
        piece = _piece(text, start, end, ordered)
        if has_visible_text(piece.text):
            formatted_texts.append(piece)
        start = _begin(text, end, ordered)
    return formatted_texts


def _begin(text: str, index: int, spans: Sequence[StyledSpan]) -> int:
    begin = skip_space(text, index)
    for span in spans:
        if span.type == _BLOCK and span.start < begin < span.end:
            # The indentation of a line of code is part of the code.
            return max(text.rfind("\n", index, begin) + 1, span.start, index)
    return begin


def _end(text: str, start: int, spans: Sequence[StyledSpan], limit: int) -> int:
    end = piece_end(text, start, limit)
    most = _affordable(spans)
    if most < len(spans) and start < spans[most].start < end:
        end = piece_end(text, start, utf16_length(text[start : spans[most].start]))
    if end == len(text):
        return end
    middle = start + (end - start) // 2
    for span in spans:
        if span.start >= end:
            break
        # A code block that begins late moves to the next piece, to be split less often.
        late = span.type == _BLOCK and span.start > middle
        if span.end > end and span.start > start and (late or span.type in _WHOLE):
            return span.start
    return end


def _affordable(spans: Sequence[StyledSpan]) -> int:
    """Return how many of the first spans fit into one message."""
    weight = 0
    for count, span in enumerate(spans[:MAX_ENTITIES]):
        weight += _ENVELOPE + len((span.url or span.language or "").encode())
        if weight > MAX_ENTITY_BYTES:
            return count
    return min(len(spans), MAX_ENTITIES)


def _piece(text: str, start: int, end: int, spans: Sequence[StyledSpan]) -> FormattedText:
    shown = text[start:end].rstrip()
    inside = (_clip(text, span, start, start + len(shown)) for span in spans if span.start < end)
    styled_spans = [span for span in inside if span.start < span.end]
    styled_spans = styled_spans[: _affordable(styled_spans)]
    if shown.isascii():
        return FormattedText(
            shown, tuple(_entity(s, s.start - start, s.end - s.start) for s in styled_spans)
        )
    entities: list[Entity] = []
    known, units = start, 0
    for span in styled_spans:
        units += utf16_length(text[known : span.start])
        known = span.start
        entities.append(_entity(span, units, utf16_length(text[span.start : span.end])))
    return FormattedText(shown, tuple(entities))


def _clip(text: str, span: StyledSpan, start: int, end: int) -> StyledSpan:
    first, last = max(span.start, start), min(span.end, end)
    while first < last and text[last - 1].isspace():
        last -= 1
    while span.type != _BLOCK and first < last and text[first].isspace():
        first += 1
    if (first, last) == (span.start, span.end):
        return span
    return replace(span, start=first, end=last)


def _entity(span: StyledSpan, offset: int, length: int) -> Entity:
    return Entity(span.type, offset, length, span.url, span.language)
