"""Episode lines grouped by day: ``12 10:14 user: help with patent | tags legal``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, get_args

from bot.core.patterns import LazyPattern
from bot.memory.records.compartment_records import EpisodeEntry, EpisodeType
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
    encode_word,
    encode_words,
    join_content,
    split_content,
)

_TITLE = "episodes (id t r: c; no t: as the line above)"
_DAY = LazyPattern(r"@([0-9]{4}-[0-9]{2}-[0-9]{2})")
_CLOCK = LazyPattern(r"[0-9]{2}:[0-9]{2}")
_TYPES: tuple[EpisodeType, ...] = get_args(EpisodeType)
_ROLE = LazyPattern(r"[a-z]+")
_NAMED = {"turn": ("role", "content"), "tool": ("tool", "result")}
"""Content keys of the name and the text of an episode, by type."""

_TEXT: dict[str, str] = {"summary": "summary"}
"""Content key of the text for other types, if it is not ``text``."""


@dataclass(slots=True)
class _Legend:
    """Values stated in the header, and the time of the previous line."""

    ids: EntryIdNotation
    problem: str | None
    layer: str
    before: datetime | None = None

    @classmethod
    def of(cls, entries: Sequence[EpisodeEntry]) -> _Legend:
        named = [episode.supersedes for episode in entries if episode.supersedes is not None]
        return cls(
            EntryIdNotation.of([*(episode.id for episode in entries), *named]),
            most_common([episode.problem_id for episode in entries]),
            most_common([episode.hrm_layer for episode in entries]) or "",
        )

    def header(self) -> str:
        said = [] if self.problem is None else [encode_cell("problem", self.problem)]
        said += [encode_cell("layer", self.layer)] if self.layer else []
        return CELL_SEPARATOR.join([_TITLE, *self.ids.cells(), *said])

    def lines(self, episode: EpisodeEntry) -> list[str]:
        """Return an episode's line, preceded by a line for its day if that is new."""
        day = episode.timestamp.astimezone(UTC).date()
        known = self.before is not None and day == self.before.date()
        when = (
            ""
            if episode.timestamp == self.before
            else f"{TimeNotation().write(episode.timestamp, day)} "
        )
        self.before = episode.timestamp.astimezone(UTC)
        who, main, rest = _told(episode)
        cells = [f"{self.ids.write(episode.id)} {when}{who}: {main}"]
        cells += encode_words("tags", episode.tags)
        if episode.problem_id != self.problem:
            cells.append(encode_cell("problem", episode.problem_id))
        if episode.hrm_layer != self.layer:
            cells.append(encode_cell("layer", episode.hrm_layer))
        if episode.supersedes is not None:
            cells += encode_words("supersedes", [episode.supersedes], self.ids.write)
        line = CELL_SEPARATOR.join(cells + rest)
        return [line] if known else [f"@{day.isoformat()}", line]

    def read(self, line: str) -> EpisodeEntry | None:
        """Parse a line; return None for a line that states the day."""
        if day := _DAY.fullmatch(line):
            self.before = datetime.combine(date.fromisoformat(day[1]), time(), UTC)
            return None
        reader = LineParser(line)
        entry = self.ids.read(*reader.read_text(" "))
        reader.require_sign(" ")
        if self.before is None:
            raise ValueError(f"no day above: {line}")
        if _CLOCK.match(line, reader.at):
            self.before = TimeNotation().read(reader.read_word(" "), self.before.date())
            reader.require_sign(" ")
        kind, key, told = _who(reader)
        reader.require_sign(": ")
        main = reader.read_value("|")
        said = reader.read_cells()
        superseded = said.get("supersedes")
        return EpisodeEntry(
            entry,
            self.before,
            said.get("problem", self.problem),
            said.get("layer", self.layer),
            kind,
            told | join_content(main, key, said.get("")),
            [text for text, _ in said.get("tags", ())],
            self.ids.read(*superseded[0]) if superseded else None,
        )


def encode_episodes(entries: Sequence[EpisodeEntry]) -> str:
    """Encode episodes below a header and day lines; empty if there are none."""
    legend = _Legend.of(entries)
    lines = (line for episode in entries for line in legend.lines(episode))
    return "\n".join([legend.header(), *lines]) if entries else ""


def decode_episodes(text: str) -> list[EpisodeEntry]:
    """Decode what ``encode_episodes`` wrote.

    Raises:
        ValueError: The text is not in this notation.
    """
    if not text:
        return []
    said, ids, lines = parse_header(text, _TITLE)
    legend = _Legend(ids, said.get("problem"), said.get("layer", ""))
    return [episode for line in lines if (episode := legend.read(line)) is not None]


def render_episodes(entries: Iterable[EpisodeEntry], most: int) -> str:
    """Render the newest ``most`` of some episodes, which are given oldest first."""
    episodes = list(entries)
    left = len(episodes) - max(0, most)
    shown = encode_episodes(episodes[max(0, left) :])
    return f"({left} more before these)\n{shown}".rstrip() if left > 0 else shown


def _told(episode: EpisodeEntry) -> tuple[str, str, list[str]]:
    """Return an episode's label, its text, and the cells with the rest of its content."""
    by, key = _NAMED.get(episode.entry_type, ("", ""))
    name = episode.content.get(by)
    if isinstance(name, str) and isinstance(episode.content.get(key), str):
        rest = {held: of for held, of in episode.content.items() if held != by}
        if episode.entry_type == "tool":
            return f"tool {encode_word(name, KEY_SEPARATOR)}", *split_content(rest, key)
        if _ROLE.fullmatch(name) and name not in _TYPES:
            return name, *split_content(rest, key)
    return episode.entry_type, *split_content(
        episode.content, _TEXT.get(episode.entry_type, "text")
    )


def _who(reader: LineParser) -> tuple[EpisodeType, str, dict[str, Any]]:
    """Parse an episode's label: its type, the key of its text, and content from its name."""
    name = reader.read_word(" :")
    if name == "tool" and reader.skip_sign(" "):
        by, key = _NAMED["tool"]
        return "tool", key, {by: reader.read_word(KEY_SEPARATOR)}
    kind = next((episode_type for episode_type in _TYPES if episode_type == name), None)
    if kind is not None:
        return kind, _TEXT.get(kind, "text"), {}
    by, key = _NAMED["turn"]
    return "turn", key, {by: name}
