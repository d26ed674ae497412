"""Verify the tapes of a folder, even beside the process that writes them. Blocking.

``bot.tape.verification`` checks the content of the lines; this module checks that the files are
there and hold what was written to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bot.core.errors import TapeError, TapeNotFound
from bot.core.i18n import _, format_number
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT, Segment, last_dropped
from bot.tape.stores import line_scan as scan
from bot.tape.stores.folder import TapeFolder, is_live, successor_path
from bot.tape.stores.heads import HeadFile
from bot.tape.stores.line_scan import FileSource
from bot.tape.stores.packed_segment import (
    PackedContents,
    ParityDamage,
    find_damage,
    mend_block,
    read_block,
    read_contents,
)
from bot.tape.verification import IntegrityProblem, TapePart, TapeVerifier

_TRIES = 20


@dataclass(slots=True)
class VerificationReport:
    """The result of a verification.

    Attributes:
        tapes: How many tapes were checked.
        files: How many files they have.
        entries: How many entries they have.
        unchained: How many entries have no digest, since they are from before the chain.
        problems: The problems found.
    """

    tapes: int = 0
    files: int = 0
    entries: int = 0
    unchained: int = 0
    problems: list[IntegrityProblem] = field(default_factory=list)


def verify_folder(root: Path, workspace: str, session: str | None = None) -> VerificationReport:
    """Verify the tapes of a workspace, or one of them.

    Raises:
        TapeNotFound: There is no such tape.
        TapeError: A tape was archived or reset again and again during its verification.
    """
    folder = TapeFolder(root, workspace)
    heads = HeadFile(folder.heads_path, writable=False)
    heads.load()
    stems = sorted({*folder.stems(), *heads.known()})
    if session is not None:
        if folder.stem(session) not in stems:
            raise TapeNotFound(_("there is no tape {session}", session=session))
        stems = [folder.stem(session)]
    report = VerificationReport()
    for stem in stems:
        _one(folder, stem, report)
    return report


def _one(folder: TapeFolder, stem: str, report: VerificationReport) -> None:
    for _unused in range(_TRIES):
        # Files may be archived or packed at any moment; then the tape is checked again.
        with suppress(FileNotFoundError):
            try:
                check, files = _Tape(folder, stem).check()
            except FileNotFoundError:
                raise
            except OSError as error:
                report.tapes += 1
                report.problems.append(IntegrityProblem(f"{stem}.jsonl", "", _unreadable(error)))
                return
            report.tapes += 1
            report.files += files
            report.entries += check.entries
            report.unchained += check.unchained
            report.problems += check.problems
            return
    raise TapeError(_("the files {stem} change too quickly to be checked: try again", stem=stem))


class _Tape:
    """Verify the files of one tape."""

    def __init__(self, folder: TapeFolder, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._live = folder.root / f"{stem}.jsonl"

    def check(self) -> tuple[TapeVerifier, int]:
        """Verify all files; return the verifier and the number of files."""
        # Read before the files, so that later appends do not matter.
        heads = HeadFile(self._folder.heads_path, writable=False)
        heads.load()
        known = heads.get(self._stem)
        with _opened(self._live, successor_path(self._live), self._live) as live:
            head = scan.first_entry(live) if live is not None else None
            named = head.data.get("session") if head and head.name == HEADER_EVENT else None
            segments = self._folder.segments_of(self._stem)
            # A segment sealed since the live file was opened is that file.
            parts = [s for s in segments if head is None or _before(s, head)]
            check = TapeVerifier(named if isinstance(named, str) else None)
            if isinstance(named, str) and self._folder.stem(named) != self._stem:
                self._wrong(
                    check,
                    self._live.name,
                    _("it belongs to another session: {named!r}", named=named),
                )
            for segment in parts:
                check.begin_part(TapePart(segment.name, (segment.first_id, segment.last_id)))
                with self._read(check, segment.name):
                    self._segment(check, segment)
            if live is None:
                self._wrong(check, self._live.name, _("the live file is missing"))
            else:
                check.begin_part(TapePart(self._live.name))
                with self._read(check, self._live.name):
                    _lines(check, live)
                    check.check_head(None if known is None else (known.last_id, known.value))
                if not is_live(self._live, live.fd):
                    # A reset may have removed segments before they were read.
                    raise FileNotFoundError
        check.finish()
        return check, len(parts) + (live is not None)

    def _segment(self, check: TapeVerifier, segment: Segment) -> None:
        raw, packed = self._folder.segment_path(segment), self._folder.packed_path(segment)
        # Until packing has finished, the raw file counts.
        with _opened(raw) as file:
            if file is not None:
                _lines(check, file)
                return
        with scan.open_source(packed) as file:
            self._packed(check, segment, file)

    def _packed(self, check: TapeVerifier, segment: Segment, file: FileSource) -> None:
        contents = read_contents(file.fd, segment)
        name = self._folder.packed_path(segment).name
        digest, whole, cut = sha256(), True, False
        for place, block in enumerate(contents.blocks):
            data = read_block(file.fd, block)
            if data is None:
                data = mend_block(file.fd, block, contents.protected)
            if data is None:
                lost = lost_entries(contents, place, segment)
                self._wrong(
                    check, name, lost, _("byte {offset}", offset=format_number(block.offset))
                )
                check.skip_lost_lines(block.lines)
                whole = False
                continue
            digest.update(data)
            *lines, rest = data.split(b"\n")
            offset, cut = block.start, bool(rest)
            for raw in lines:
                check.check_line(offset, raw)
                offset += len(raw) + 1
        check.end_part(cut=cut)
        for what in _trailer(contents, segment, digest.hexdigest() if whole else None):
            self._wrong(check, name, what)
        for what in _damage(find_damage(file.fd, contents), told=not whole):
            self._wrong(check, name, what)

    @contextmanager
    def _read(self, check: TapeVerifier, name: str) -> Iterator[None]:
        """On a read error report it and end the part."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            self._wrong(check, name, _unreadable(error))
            check.end_part(cut=False)

    def _wrong(self, check: TapeVerifier, file: str, what: str, where: str = "") -> None:
        check.problems.append(IntegrityProblem(file, where, what))


def _before(segment: Segment, head: TapeEntry) -> bool:
    """Return whether a segment belongs to the tape before a live file with this header."""
    return last_dropped(head) < segment.first_id and segment.last_id < head.id


@contextmanager
def _opened(*paths: Path) -> Iterator[FileSource | None]:
    """Open the first of these files that exists; yield None if none does."""
    with ExitStack() as stack:
        found = None
        for path in paths:
            with suppress(FileNotFoundError):
                found = stack.enter_context(scan.open_source(path))
                break
        yield found


def _lines(check: TapeVerifier, file: FileSource) -> None:
    """Verify all lines of a raw file and end the part."""
    end = 0
    for offset, raw in scan.raw_lines_from(file, 0, file.size):
        check.check_line(offset, raw)
        end = offset + len(raw) + 1
    check.end_part(cut=end < file.size)


def _unreadable(error: OSError) -> str:
    return _("the storage cannot read it: {strerror}", strerror=error.strerror)


def lost_entries(contents: PackedContents, place: int, segment: Segment) -> str:
    """Describe the entries lost with an unreadable block."""
    blocks = contents.blocks
    if contents.trailer is None:
        return _("what is here cannot be read")
    after = blocks[place + 1].lowest if place + 1 < len(blocks) else segment.last_id + 1
    return _(
        "the block cannot be read: entries {lowest} to {last} are lost",
        lowest=blocks[place].lowest,
        last=after - 1,
    )


def _damage(damage: ParityDamage, *, told: bool) -> Iterator[str]:
    """Describe the damage found by parity; ``told`` if lost blocks are reported already."""
    if damage.mendable:
        yield (
            f"damaged places: {len(damage.mendable):,}, the first from byte {damage.mendable[0]:,} on; "
            "nothing is lost, `tapebot tape repair` repairs it"
        )
    if damage.lost and not told:
        yield f"damaged at byte {damage.lost[0]:,}, which the parity cannot repair; no entry is lost"
    if damage.ending:
        yield "its parity is damaged or cut" + ("" if told else ", no entry is lost")


def _trailer(contents: PackedContents, segment: Segment, digest: str | None) -> Iterator[str]:
    """Describe wrong fields of the trailer; a ``digest`` of None is not compared."""
    trailer = contents.trailer
    if trailer is None:
        yield _("its trailer cannot be read")
        return
    if (trailer.get("first"), trailer.get("last")) != (segment.first_id, segment.last_id):
        yield _("its trailer names other entries than its name")
    if digest is not None and trailer.get("sha256") != digest:
        yield _("its lines differ from those that were sealed: wrong checksum")
