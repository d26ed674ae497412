"""Pattern lines: ``17: The user lives in Rome. | .9 02-10T10:14 | ev 12 15``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.memory.records.compartment_records import PatternType, SynthesizedPattern
from bot.memory.records.compression.list_header import (
    EntryIdNotation,
    TimeNotation,
    most_common,
    parse_header,
)
from bot.memory.records.compression.notation import (
    CELL_SEPARATOR,
    KEY_SEPARATOR,
    LineParser,
    encode_cell,
    encode_value,
    encode_word,
    encode_words,
    join_content,
    split_content,
)

_TITLE = "patterns (id: c | conf t | ev)"
_DECAY = 0.01


@dataclass(frozen=True, slots=True)
class _Legend:
    times: TimeNotation
    ids: EntryIdNotation
    kind: PatternType
    decay: float

    @classmethod
    def of(cls, patterns: Sequence[SynthesizedPattern]) -> _Legend:
        return cls(
            TimeNotation.of([belief.last_validated for belief in patterns]),
            EntryIdNotation.of([entry for belief in patterns for entry in belief.evidence_ids]),
            most_common([belief.pattern_type for belief in patterns]) or "fact",
            most_common([belief.decay_rate for belief in patterns]) or 0.0,
        )

    def header(self) -> str:
        said = [] if self.decay == _DECAY else [encode_cell("decay", self.decay)]
        kind = encode_cell("type", self.kind)
        return CELL_SEPARATOR.join([_TITLE, *self.times.cells(), kind, *said, *self.ids.cells()])

    def line(self, belief: SynthesizedPattern, now: datetime | None) -> str:
        """Write a pattern, with cells only for what differs from the header or default."""
        main, rest = split_content(belief.content, "text")
        cells = [
            f"{encode_word(belief.id, KEY_SEPARATOR)}: {main}",
            f"{encode_value(belief.confidence, ' ')} {self.times.write(belief.last_validated)}",
        ]
        left = round(belief.confidence if now is None else belief.confidence_at(now), 2)
        if left != round(belief.confidence, 2):
            cells.append(encode_cell("now", left))
        cells += encode_words("ev", belief.evidence_ids, self.ids.write)
        if belief.pattern_type != self.kind:
            cells.append(encode_cell("type", belief.pattern_type))
        if belief.created_at != belief.last_validated:
            cells.append(f"since {self.times.write(belief.created_at)}")
        if belief.decay_rate != self.decay:
            cells.append(encode_cell("decay", belief.decay_rate))
        if belief.protected:
            cells.append("protected")
        if belief.status != "active":
            cells.append(encode_cell("is", belief.status))
        if belief.reason:
            cells.append(encode_cell("why", belief.reason))
        return CELL_SEPARATOR.join(cells + rest)

    def read(self, line: str) -> SynthesizedPattern:
        reader = LineParser(line)
        name = reader.read_word(KEY_SEPARATOR)
        reader.require_sign(": ")
        main = reader.read_value("|")
        reader.next_cell()
        confidence = reader.read_value(" ")
        reader.require_sign(" ")
        validated = self.times.read(reader.read_word(" "))
        said = reader.read_cells()
        return SynthesizedPattern(
            name,
            said.get("type", self.kind),
            join_content(main, "text", said.get("")),
            [self.ids.read(*one) for one in said.get("ev", ())],
            confidence,
            self.times.read(said["since"]) if "since" in said else validated,
            validated,
            said.get("decay", self.decay),
            "protected" in said,
            said.get("is", "active"),
            said.get("why", ""),
        )


def encode_patterns(patterns: Sequence[SynthesizedPattern]) -> str:
    """Encode patterns, one line each below a header; empty if there are none."""
    return _encoded(patterns, None)


def decode_patterns(text: str) -> list[SynthesizedPattern]:
    """Decode what ``encode_patterns`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    if not text:
        return []
    said, ids, lines = parse_header(text, _TITLE)
    legend = _Legend(TimeNotation(said.get("year")), ids, said["type"], said.get("decay", _DECAY))
    return [legend.read(line) for line in lines]


def render_patterns(patterns: Iterable[SynthesizedPattern], now: datetime, most: int) -> str:
    """Render the ``most`` patterns with the highest confidence at this time.

    ``now`` in a line is the confidence after decay, if that is lower.
    """
    ranked = sorted(patterns, key=lambda belief: belief.confidence_at(now), reverse=True)
    left = len(ranked) - max(0, most)
    shown = _encoded(ranked[: max(0, most)], now)
    return f"{shown}\n({left} more, less certain)".lstrip() if left > 0 else shown


def _encoded(patterns: Sequence[SynthesizedPattern], now: datetime | None) -> str:
    legend = _Legend.of(patterns)
    lines = [legend.line(belief, now) for belief in patterns]
    return "\n".join([legend.header(), *lines]) if patterns else ""
