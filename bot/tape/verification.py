"""Verify a tape's ids, appends, segments, anchors and memory zones, line by line. Pure.

Rule 1: ids grow by one within a part.
Rule 2: an append is complete.
Rule 3: each part starts with a header that names the session and the previous segment; a header
    without a previous segment follows only a reset or a fork.
Rule 4: no id occurs twice; a named anchor points at an entry that exists or that a reset dropped.
Rule 5: a memory zone is opened and sealed with one version, and versions never decrease.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.core.i18n import _, format_number
from bot.tape.codec import TapeLine, decode_line, decode_lines
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.store import HEADER_EVENT


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """A problem found in a tape's file.

    Attributes:
        file: Name of the file.
        where: Line and byte offset in it; empty if the whole file is concerned.
        what: Description of the problem, with the ids that it concerns.
    """

    file: str
    where: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.where, self.what) if part)


@dataclass(frozen=True, slots=True)
class TapePart:
    """A file of a tape: a sealed segment or the live file.

    Attributes:
        name: The segment's name, or the live file's.
        ids: First and last id of a segment, from its name; None for the live file.
    """

    name: str
    ids: tuple[int, int] | None = None


class TapeVerifier:
    """Verify one tape, part by part and line by line, in order.

    Args:
        tape: The session's key; None if it is unknown.

    Attributes:
        tape: As given.
        problems: Problems found so far.
    """

    def __init__(self, tape: str | None) -> None:
        self.problems: list[IntegrityProblem] = []
        self.tape = tape
        self._ids: set[int] = set()
        self._highest = 0
        self._targets: list[tuple[str, str, TapeEntry]] = []
        self._zone: tuple[str, str, int, int] | None = None
        self._version = 0
        self._copied_from = 0
        self._dropped: list[range] = []
        self._before: TapePart | None = None
        self._part = TapePart("")
        self._number = 0
        self._where = ""
        self._last: TapeLine | None = None

    @property
    def entries(self) -> int:
        """How many entries were read."""
        return len(self._ids)

    def begin_part(self, part: TapePart) -> None:
        """Start the next part."""
        self._part, self._number, self._last = part, 0, None

    def check_lines(self, lines: Iterable[bytes]) -> None:
        """Check the lines of the part's file."""
        offset = 0
        for raw in lines:
            self._number += 1
            self._where = _(
                "line {number} (byte {offset})", number=self._number, offset=format_number(offset)
            )
            found = decode_lines(raw)
            if not found:
                self.report(
                    _("the line cannot be read") if raw else _("what is here cannot be read")
                )
            elif decode_line(raw) is None:
                self.report(_("another byte replaced a newline; nothing is lost"))
            for line in found:
                self.check_entry(line.entry, line.more)
            offset += len(raw) + 1

    def check_entry(self, entry: TapeEntry, more: int = 0) -> None:
        """Check the next readable entry of the part; ``more`` of its append follow."""
        if self._last is None:
            self._begins(entry)
        else:
            self._follows(entry, more, self._last)
        self._ids.add(entry.id)
        self._highest = max(self._highest, entry.id)
        if self._last is None or entry.id > self._last.entry.id:
            self._last = TapeLine(entry, more)
        if entry.kind == "anchor":
            self._anchor(entry)

    def end_part(self) -> None:
        """End the part."""
        self._where = _("after line {number}", number=self._number) if self._number else ""
        if self._part.ids is not None:
            last = self._last.entry.id if self._last else self._part.ids[0] - 1
            if last < self._part.ids[1]:
                self._missing(last + 1, self._part.ids[1])
        elif self._last is None:
            self.report(_("none of its lines can be read"))
        self._before = self._part

    def finish(self) -> None:
        """Finish the tape: check the open memory zone and the anchors' targets."""
        if self._zone is not None:
            file, where, opened, _unused = self._zone
            what = _("the memory zone of entry {opened} has no seal", opened=opened)
            self.report(what, file, where)
        for file, where, entry in self._targets:
            target = entry.target_id
            # In a fork's copy the target may have stayed in the parent; a reset may have dropped it before.
            known = target is not None and (
                target in self._ids
                or target < self._copied_from
                or any(target in dropped for dropped in self._dropped)
            )
            if not known:
                what = _(
                    "the anchor {name} of entry {entry} points at entry {target}, which is missing",
                    name=entry.name,
                    entry=entry.id,
                    target=entry.payload.get("entry"),
                )
                self.report(what, file, where)

    def report(self, what: str, file: str | None = None, where: str | None = None) -> None:
        """Add a problem, by default of the present line."""
        at = self._where if where is None else where
        self.problems.append(IntegrityProblem(file or self._part.name, at, what))

    # Ids and appends.

    def _missing(self, first: int, last: int) -> None:
        self.report(_("entries {first} to {last} are missing", first=first, last=last))

    def _begins(self, entry: TapeEntry) -> None:
        """Check the first readable line of a part."""
        first = self._part.ids[0] if self._part.ids else entry.id
        if entry.id > first:
            self._missing(first, entry.id - 1)
        if entry.id <= self._highest:
            self.report(_("entry {id} comes after entry {ends}", id=entry.id, ends=self._highest))
        if entry.name != HEADER_EVENT:
            if self._number < 2:
                self.report(_("it does not begin with a header"))
            return
        named = entry.data.get("session")
        if self.tape is not None and named != self.tape:
            self.report(_("its header names another session: {get!r}", get=named))
        previous, parent = entry.data.get("previous"), entry.data.get("parent")
        if isinstance(parent, dict) and isinstance(parent.get("first"), int):
            self._copied_from = parent["first"]
        if previous is None:
            self._dropped.append(range(self._highest + 1, entry.id))
        elif self._before is None or self._before.name != previous:
            self.report(
                _("it continues the segment {previous}, which is missing", previous=previous)
            )
        elif self._before.ids is not None and entry.id != self._before.ids[1] + 1:
            self.report(
                _(
                    "it continues with entry {first}, but the segment before ends with {last}",
                    first=entry.id,
                    last=self._before.ids[1],
                )
            )

    def _follows(self, entry: TapeEntry, more: int, before: TapeLine) -> None:
        """Check an entry's id and append against the line before it."""
        number, last = entry.id, before.entry.id
        if before.more and number + more != last + before.more:
            end = last + before.more
            self.report(_("the append up to entry {end} is incomplete", end=end))
        if number > last + 1:
            self._missing(last + 1, number - 1)
        elif number in self._ids:
            self.report(_("entry {number} is duplicated", number=number))
        elif number <= last:
            self.report(_("entry {number} is out of order", number=number))

    # Zones and named anchors.

    def _anchor(self, entry: TapeEntry) -> None:
        version = entry.data.get("version")
        version = version if type(version) is int else 0
        if "entry" in entry.payload:
            self._targets.append((self._part.name, self._where, entry))
        elif entry.name == MEMORY_OPEN:
            if self._zone is not None:
                file, where, opened, _unused = self._zone
                what = _("the memory zone of entry {opened} has no seal", opened=opened)
                self.report(what, file, where)
            self._zone = (self._part.name, self._where, entry.id, version)
        elif entry.name == MEMORY_SEAL:
            self._sealed(entry, version)

    def _sealed(self, entry: TapeEntry, version: int) -> None:
        opened, self._zone = self._zone, None
        if opened is None:
            # A fork may begin inside a zone.
            if self._version or not self._copied_from:
                what = _("entry {id} seals a memory zone that was not opened", id=entry.id)
                self.report(what)
            return
        if opened[3] != version:
            self.report(
                _(
                    "the memory zone of version {opened} is sealed as {version} by entry {entry}",
                    opened=opened[3],
                    version=version,
                    entry=entry.id,
                )
            )
        if version < self._version:
            self.report(
                _(
                    "the memory's version falls from {before} to {version} with entry {entry}",
                    before=self._version,
                    version=version,
                    entry=entry.id,
                )
            )
        self._version = max(self._version, version)
