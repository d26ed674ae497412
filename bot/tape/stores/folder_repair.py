"""Repair the damaged files of a tape folder. Blocking.

A file is repaired only if the result is proved to be what was written; otherwise it stays
unchanged. The repaired file is written beside the damaged one and replaces it by one rename.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.errors import TapeNotFound
from bot.core.files import PRIVATE_FILE, sync_directory, write_synced
from bot.core.i18n import _, format_number, ngettext
from bot.tape.codec import CANCEL, decode_line
from bot.tape.line_repair import repair_lines
from bot.tape.store import Segment
from bot.tape.stores import line_scan as scan
from bot.tape.stores.folder import SEALED_FILE, TapeFolder
from bot.tape.stores.folder_verification import lost_entries
from bot.tape.stores.packed_segment import (
    PackedContents,
    mend_block,
    mend_file,
    read_block,
    read_contents,
)
from bot.tape.stores.segment_packer import check_packed

_LISTED = 10


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file with content that differs from what was written.

    Attributes:
        name: Name of the file.
        what: Description of the damage, to be displayed.
        mendable: Whether the damage can be repaired, or was.
    """

    name: str
    what: str
    mendable: bool


@dataclass(slots=True)
class RepairReport:
    """The result of a repair.

    Attributes:
        tapes: How many tapes were checked.
        damaged: The damaged files.
    """

    tapes: int = 0
    damaged: list[DamagedFile] = field(default_factory=list)


def repair_folder(
    root: Path, workspace: str, session: str | None = None, *, dry_run: bool = False
) -> RepairReport:
    """Repair the tapes of a workspace, or one of them.

    Args:
        root: The tapes' folder.
        workspace: Name of the workspace.
        session: Only this session's tape; None for all.
        dry_run: Write nothing and take no lock.

    Raises:
        TapeLocked: A running tapebot uses the folder.
        TapeNotFound: There is no such tape.
        SegmentDamaged: The repaired file does not read back; the damaged one stays.
        OSError: Writing failed.
    """
    folder = TapeFolder(root, workspace)
    stems = folder.stems()
    if session is not None:
        if folder.stem(session) not in stems:
            raise TapeNotFound(_("there is no tape {session}", session=session))
        stems = [folder.stem(session)]
    if not stems:
        return RepairReport()
    if not dry_run:
        folder.lock()
    try:
        report = RepairReport(len(stems))
        for stem in stems:
            report.damaged += _repair_tape(folder, stem, dry_run=dry_run)
    finally:
        if not dry_run:
            folder.unlock()
    return report


def _repair_tape(folder: TapeFolder, stem: str, *, dry_run: bool) -> list[DamagedFile]:
    """Repair a tape's files; return the damaged ones."""
    damaged: list[DamagedFile] = []
    for segment in folder.segments_of(stem):
        raw = folder.segment_path(segment)
        # Until packing has finished, the raw file counts.
        if raw.exists():
            damaged += _repair_lines(raw, SEALED_FILE, dry_run=dry_run)
        elif (damaged_file := _repair_segment(folder, segment, dry_run=dry_run)) is not None:
            damaged.append(damaged_file)
    live = folder.root / f"{stem}.jsonl"
    if live.exists():
        damaged += _repair_lines(live, PRIVATE_FILE, dry_run=dry_run)
    return damaged


def _repair_lines(path: Path, mode: int, *, dry_run: bool) -> list[DamagedFile]:
    """Repair the lines of an unpacked file; return its damage."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        why = _("the storage cannot read it: {strerror}", strerror=error.strerror)
        return [DamagedFile(path.name, why, False)]
    mended, lost, written = [], [], []
    for number, line, was_mended in repair_lines(lines):
        written.append(line)
        if was_mended:
            mended.append(number)
        elif not line.endswith(CANCEL) and decode_line(line) is None:
            lost.append(number)
    if mended and not dry_run:
        _replace(path, b"\n".join([*written, rest]), mode, _go_on)
    found = []
    if mended:
        found.append(
            DamagedFile(path.name, _("a bit was wrong in {lines}", lines=_lines(mended)), True)
        )
    if lost:
        found.append(DamagedFile(path.name, _("{lines} cannot be read", lines=_lines(lost)), False))
    return found


def _lines(numbers: Sequence[int]) -> str:
    """Format line numbers for display."""
    listed = ", ".join(map(str, numbers[:_LISTED]))
    if len(numbers) > _LISTED:
        listed = _("{listed} and {more} more", listed=listed, more=len(numbers) - _LISTED)
    return ngettext("line {listed}", "lines {listed}", len(numbers), listed=listed)


def _repair_segment(folder: TapeFolder, segment: Segment, *, dry_run: bool) -> DamagedFile | None:
    """Repair a packed segment; return its damage, None if there is none."""
    path = folder.packed_path(segment)
    try:
        with scan.open_source(path) as file:
            contents = read_contents(file.fd, segment)
            mended = mend_file(file.fd, contents)
            if mended is None:
                return _unmended(file.fd, contents, segment, path.name)
            data = os.pread(file.fd, len(mended) + 1, 0)
    except OSError as error:
        return DamagedFile(
            path.name, _("the storage cannot read it: {strerror}", strerror=error.strerror), False
        )
    if data == mended:
        return None
    if not dry_run:
        assert contents.trailer is not None
        digest = contents.trailer["sha256"]
        _replace(
            path, mended, SEALED_FILE, lambda fresh: check_packed(fresh, segment, digest, _go_on)
        )
    count = sum(a != b for a, b in zip(data, mended, strict=False))
    differing = count + abs(len(data) - len(mended))
    return DamagedFile(
        path.name,
        _(
            "bytes that differ from what was sealed: {differing}",
            differing=format_number(differing),
        ),
        True,
    )


def _unmended(fd: int, contents: PackedContents, segment: Segment, name: str) -> DamagedFile | None:
    """Describe the damage of a packed file that parity cannot repair, if there is any."""
    lost = [
        lost_entries(contents, place, segment)
        for place, block in enumerate(contents.blocks)
        if read_block(fd, block) is None and mend_block(fd, block, contents.protected) is None
    ]
    if lost:
        return DamagedFile(name, "; ".join(lost), False)
    if contents.trailer is None:
        return DamagedFile(name, _("its trailer cannot be read"), False)
    if contents.protected:
        return DamagedFile(name, _("its lines differ from those that were sealed"), False)
    return None


def _replace(path: Path, data: bytes, mode: int, check: Callable[[Path], None]) -> None:
    """Replace a file by new content, after writing and checking it."""
    fresh = path.with_name(path.name + ".new")
    try:
        write_synced(fresh, data)
        check(fresh)
        fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _go_on(*_unused: object) -> None:
    """Ignore progress: a repair cannot be cancelled."""
