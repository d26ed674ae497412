"""Verify a tape's ids, appends, segments and digest chain line by line. Pure.

Rule 1: ids grow by one within a part; a fork's copy has the gaps that its parent had after resets.
Rule 2: an append is complete, or a repair event stands where it began and its ids are assigned
    anew. Only the last append of a live file may be unfinished: it was never acknowledged.
Rule 3: each part starts with a header that names the session and the previous segment; a header
    without a previous segment follows only a reset or a fork.
Rule 4: no id occurs twice; a named anchor points at an entry that exists or that a reset dropped.
Rule 5: each link refers to the link before it. After unreadable or superseded lines a link cannot
    be checked; parts from before the chain have no links.
Rule 6: a memory zone is opened and sealed with one version, and versions never decrease.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from bot.core.i18n import _, format_number
from bot.tape.chain import CHAIN_START
from bot.tape.codec import CANCEL, TapeLine, decode_line, split_joined
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, TapeEntry
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT


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


@dataclass(slots=True)
class _Ids:
    """A set of ids, stored as runs."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, number: int) -> None:
        if self.ends and self.ends[-1] + 1 == number:
            self.ends[-1] = number
        elif not self.ends or self.ends[-1] < number:
            self.starts.append(number)
            self.ends.append(number)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.starts, number) - 1
        return place >= 0 and number <= self.ends[place]


class TapeVerifier:
    """Verify one tape, part by part and line by line, in order.

    Args:
        tape: The session's key; None if it is unknown.

    Attributes:
        problems: Problems found so far.
        entries: How many entries were read.
        unchained: How many of them have no digest.
    """

    def __init__(self, tape: str | None) -> None:
        self.problems: list[IntegrityProblem] = []
        self.entries = 0
        self.unchained = 0
        self._chain: bytes | None = CHAIN_START
        self._chained = False
        self._tape = tape
        self._ids = _Ids()
        self._targets: list[tuple[str, str, TapeEntry]] = []
        self._zone: tuple[str, str, int, int] | None = None
        self._version = 0
        self._copied_from = 0
        self._dropped: list[range] = []
        self._before: TapePart | None = None
        self._part = TapePart("")
        self._number = 0
        self._where = ""
        self._last: int | None = None
        self._damaged = 0
        self._group: list[tuple[str, TapeLine]] = []

    def begin_part(self, part: TapePart) -> None:
        """Start the next part."""
        self._part = part
        self._number = self._damaged = 0
        self._last = None
        self._group = []
        self._chained = False

    def check_head(self, known: tuple[int, bytes] | None) -> None:
        """Compare the end of the tape with the recorded newest entry.

        Args:
            known: The newest entry's recorded id and link value, ``CHAIN_START`` if it has no link;
                None if nothing was recorded.
        """
        if known is None or known[0] < (self._last or 0):
            return
        if known[0] > (self._last or 0) + self._damaged:
            self._wrong(_("entries up to {known} were recorded, but are missing", known=known[0]))
        elif (
            known[1] not in (CHAIN_START, self._chain)
            and self._chain is not None
            and not self._damaged
        ):
            self._wrong(_("entry {known} is not the one that was recorded", known=known[0]))

    def check_line(self, offset: int, raw: bytes) -> None:
        """Check the next line of the part; it may be two lines joined by a damaged newline."""
        self._number += 1
        self._where = _(
            "line {number} (byte {offset})", number=self._number, offset=format_number(offset)
        )
        data, *others = split_joined(raw)
        if others:
            self._wrong(_("another byte replaced a newline; nothing is lost"))
        for each in (data, *others):
            self._line(each)

    def _line(self, raw: bytes) -> None:
        if raw.endswith(CANCEL):
            return
        line = decode_line(raw)
        if line is None:
            self._damaged += 1
            self._chain = None
            if self._last is None:
                self._wrong(_("the line cannot be read"))
            else:
                entry = self._last + self._damaged
                self._wrong(_("the line cannot be read, it stood for entry {entry}", entry=entry))
            return
        if self._last is None:
            self._begins(line.entry)
        else:
            self._follows(line)
        if self._group and not _together(self._group[-1][1], line):
            self._complete()
        self._group.append((self._where, line))
        self._linked(line)
        self._last = max(line.entry.id, self._last or 0)
        self._damaged = 0
        if not line.more:
            self._complete()

    def skip_lost_lines(self, lines: int) -> None:
        """Skip unreadable lines that the caller has already reported."""
        self._number += lines
        self._damaged += lines
        self._chain = None

    def end_part(self, *, cut: bool) -> None:
        """End the part.

        Args:
            cut: Whether bytes follow the last newline.
        """
        self._where = _("after line {number}", number=self._number)
        if self._part.ids is not None:
            if cut:
                self._wrong(_("the last line is not terminated"))
            if self._group and self._group[-1][1].more > self._damaged:
                first, last = self._group[0][1].entry.id, _end(self._group[-1][1])
                self._wrong(
                    _(
                        "the append of entries {first} to {last} is incomplete",
                        first=first,
                        last=last,
                    )
                )
            self._complete()
            last = (self._last or self._part.ids[0] - 1) + self._damaged
            if last < self._part.ids[1]:
                self._wrong(
                    _("entries {next} to {end} are missing", next=last + 1, end=self._part.ids[1])
                )
        elif self._last is None:
            self._wrong(_("none of its lines can be read"))
        self._before = self._part

    def finish(self) -> None:
        """Finish the tape: check the open memory zone and the anchors' targets."""
        if self._zone is not None:
            file, where, opened, _unused = self._zone
            self._report(
                file, where, _("the memory zone of entry {opened} has no seal", opened=opened)
            )
        for file, where, entry in self._targets:
            target = entry.payload.get("entry")
            if entry.target_id is not None and entry.target_id < self._copied_from:
                # In a fork's copy the target may have stayed in the parent.
                continue
            if any(entry.target_id in dropped for dropped in self._dropped):
                # A reset dropped the target before the anchor was written.
                continue
            if entry.target_id is None or entry.target_id not in self._ids:
                what = _(
                    "the anchor {name} of entry {entry} points at entry {target}, which is missing",
                    name=entry.name,
                    entry=entry.id,
                    target=target,
                )
                self._report(file, where, what)

    # Ids and appends.

    def _begins(self, entry: TapeEntry) -> None:
        """Check the first readable line of a part."""
        first = self._part.ids[0] if self._part.ids else entry.id
        if entry.id > first + self._damaged:
            self._wrong(_("entries {first} to {last} are missing", first=first, last=entry.id - 1))
        if self._ids.ends and entry.id <= self._ids.ends[-1]:
            self._wrong(
                _("entry {id} comes after entry {ends}", id=entry.id, ends=self._ids.ends[-1])
            )
        if entry.name != HEADER_EVENT:
            if not self._damaged:
                self._wrong(_("it does not begin with a header"))
            return
        if self._tape is not None and entry.data.get("session") != self._tape:
            self._wrong(
                _("its header names another session: {get!r}", get=entry.data.get("session"))
            )
        previous, parent = entry.data.get("previous"), entry.data.get("parent")
        if isinstance(parent, dict) and isinstance(parent.get("first"), int):
            self._copied_from = parent["first"]
        if previous is not None:
            self._continues(entry.id, str(previous))
        else:
            self._dropped.append(range((self._ids.ends or [0])[-1] + 1, entry.id))

    def _continues(self, first: int, previous: str) -> None:
        if self._before is None or self._before.name != previous:
            self._wrong(
                _("it continues the segment {previous}, which is missing", previous=previous)
            )
        elif self._before.ids is not None and first != self._before.ids[1] + 1:
            last = self._before.ids[1]
            self._wrong(
                _(
                    "it continues with entry {first}, but the segment before ends with {last}",
                    first=first,
                    last=last,
                )
            )

    def _follows(self, line: TapeLine) -> None:
        """Check a line's id and append against the lines before it."""
        number, last = line.entry.id, self._last or 0
        group = self._group[-1][1] if self._group else None
        if group is not None and not _together(group, line):
            first, end = self._group[0][1].entry.id, _end(group)
            if line.entry.name == REPAIR_EVENT and number == first:
                # The append was cut short and never acknowledged.
                self._group = []
                self._last = self._damaged = 0
                return
            if end > last + self._damaged:
                self._wrong(
                    _(
                        "the append of entries {first} to {end} is incomplete: {next} to {end} are missing",
                        first=first,
                        end=end,
                        next=last + 1,
                    )
                )
                if number == end + 1:
                    return
        if number <= last:
            again = number in self._ids or any(
                tape_line.entry.id == number for _unused, tape_line in self._group
            )
            self._wrong(
                _("entry {number} is duplicated", number=number)
                if again
                else _("entry {number} is out of order", number=number)
            )
        elif number > (missing := last + 1 + self._damaged):
            if self._is_seam(line.entry):
                self._dropped.append(range(missing, number))
            else:
                self._wrong(
                    _("entries {missing} to {last} are missing", missing=missing, last=number - 1)
                )

    def _is_seam(self, entry: TapeEntry) -> bool:
        """Return whether a copied part of the parent starts here, after a reset."""
        return bool(self._copied_from) and entry.name == HEADER_EVENT

    def _complete(self) -> None:
        """Record the entries of a finished append."""
        for where, line in self._group:
            if line.entry.id not in self._ids:
                self.entries += 1
            self._ids.add(line.entry.id)
            self._fact(where, line.entry)
        self._group = []

    def _linked(self, line: TapeLine) -> None:
        """Check a line's link against the one before it."""
        link = line.link
        if link is None:
            if self._chained:
                self._wrong(_("entry {id} has no digest", id=line.entry.id))
            self.unchained += 1
            self._chain = None
            return
        if self._last is None:
            self._chained = True
        # After a repair or a reset the link refers to the last line that counts, not to the line
        # before.
        begins = line.entry.name == HEADER_EVENT and "previous" not in line.entry.data
        if (
            link.previous != self._chain
            and self._chain is not None
            and line.entry.name != REPAIR_EVENT
            and not begins
        ):
            self._wrong(
                _(
                    "entry {id} does not follow the line before it: lines between them were removed or "
                    "replaced",
                    id=line.entry.id,
                )
            )
        self._chain = link.value

    # Zones and named anchors.

    def _fact(self, where: str, entry: TapeEntry) -> None:
        if entry.kind != "anchor":
            return
        if "entry" in entry.payload:
            self._targets.append((self._part.name, where, entry))
        elif entry.name == MEMORY_OPEN:
            if self._zone is not None:
                file, there, opened, _unused = self._zone
                self._report(
                    file, there, _("the memory zone of entry {opened} has no seal", opened=opened)
                )
            self._zone = (self._part.name, where, entry.id, _version(entry))
        elif entry.name == MEMORY_SEAL:
            self._sealed(where, entry)

    def _sealed(self, where: str, entry: TapeEntry) -> None:
        opened, version = self._zone, _version(entry)
        self._zone = None
        if opened is None:
            # A fork may begin inside a zone.
            if self._version or not self._copied_from:
                self._report(
                    self._part.name,
                    where,
                    _("entry {id} seals a memory zone that was not opened", id=entry.id),
                )
            return
        if opened[3] != version:
            what = _(
                "the memory zone of version {opened} is sealed as {version} by entry {entry}",
                opened=opened[3],
                version=version,
                entry=entry.id,
            )
            self._report(self._part.name, where, what)
        if version < self._version:
            what = _(
                "the memory's version falls from {before} to {version} with entry {entry}",
                before=self._version,
                version=version,
                entry=entry.id,
            )
            self._report(self._part.name, where, what)
        self._version = max(self._version, version)

    def _wrong(self, what: str) -> None:
        self._report(self._part.name, self._where, what)

    def _report(self, file: str, where: str, what: str) -> None:
        self.problems.append(IntegrityProblem(file, where, what))


def _end(line: TapeLine) -> int:
    """Return the last id of a line's append."""
    return line.entry.id + line.more


def _together(earlier: TapeLine, later: TapeLine) -> bool:
    """Return whether two lines belong to one append."""
    return earlier.entry.id < later.entry.id <= _end(earlier) == _end(later)


def _version(entry: TapeEntry) -> int:
    version = entry.data.get("version")
    return version if type(version) is int else 0
