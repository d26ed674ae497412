"""Name, lock and list the files of a tape folder. Blocking.

Names are ``<workspace>__<session>`` (two hashes of 16 digits), so that no id from a platform can
become a path; the header entry names the session. A segment's name adds its time and ids:
``<workspace>__<session>.20260210T100000Z.1-532.jsonl``, and ``.gz`` once it is packed; while both
exist, the packed one counts. Unfinished files end with ``.new``.

Archiving is atomic: the live file gets its segment's name as a second one, then its successor takes
the first one over by one rename. A segment that overlaps the live file is an archiving that did not
happen; the tape goes on in the live file, and the second name is removed.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from hashlib import md5
from pathlib import Path

from filelock import FileLock, Timeout

from bot.core.errors import TapeLocked
from bot.core.files import (
    PRIVATE_FILE,
    list_files,
    private_directory,
    sync_directory,
    write_synced,
)
from bot.core.i18n import _
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT, Segment
from bot.tape.stores.parts import PACKED, PartFile, open_part

logger = logging.getLogger(__name__)

SEALED_FILE = 0o400


class KnownWorkspace(str):
    """A workspace by what stands for it in file names, from which its own name is not known."""

    __slots__ = ()


def workspaces_in(root: Path) -> list[KnownWorkspace]:
    """Return the workspaces that have tapes in a folder."""
    names = {path.name.partition("__")[0] for path in list_files(root, "*__*.jsonl*")}
    # Another name is no tape's, and could be a pattern.
    return sorted(KnownWorkspace(name) for name in names if len(name) == 16 and name.isalnum())


class TapeFolder:
    """The tape files of one workspace in a folder. Blocking, without state but the lock.

    Args:
        root: The folder.
        workspace: Part of every file's name.
    """

    def __init__(self, root: Path, workspace: str) -> None:
        self.root = root
        known = isinstance(workspace, KnownWorkspace)
        self._workspace = workspace if known else _digest(workspace)
        self._lock = FileLock(root / ".lock", timeout=0, mode=PRIVATE_FILE, thread_local=False)

    def lock(self) -> None:
        """Create the folder if it does not exist, lock it, and remove unfinished files.

        Raises:
            TapeLocked: Another process has the lock.
        """
        private_directory(self.root)
        owner = self.root / ".owner"
        try:
            self._lock.acquire()
        except Timeout as error:
            held = owner.read_text(encoding="utf-8").strip() if owner.exists() else ""
            raise TapeLocked(
                _(
                    "the tapes in {root} are in use by another tapebot (process {held}); stop it, or "
                    "give this one another TAPEBOT_HOME",
                    root=self.root,
                    held=held or "?",
                )
            ) from error
        try:
            write_synced(owner, f"{os.getpid()}\n".encode())
            for kind in ("__*.new", ".index.db.new*"):
                for begun in list_files(self.root, f"{self._workspace}{kind}"):
                    begun.unlink()
            for segment in self.raw_segments():
                if self.is_half_packed(segment) or self.overlaps(segment):
                    self.segment_path(segment).unlink()
            # A process that was killed may have left new names that are not durable; appends must not precede them.
            sync_directory(self.root)
        except BaseException:
            self._lock.release()
            raise

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.release()

    def live_path(self, tape: str) -> Path:
        """Return the path of a tape's live file."""
        return self.root / f"{self.stem(tape)}.jsonl"

    def temporary_path(self, tape: str, number: int) -> Path:
        """Return the path of a live file that is being created; numbers keep several apart."""
        return self.root / f"{self.stem(tape)}.jsonl.{number}.new"

    @property
    def index_path(self) -> Path:
        """The path of the index of this workspace's tapes."""
        return self.root / f"{self._workspace}.index.db"

    @property
    def folds_path(self) -> Path:
        """The path of the folder for states of this workspace's tapes, which belongs to the index."""
        return self.root / f"{self._workspace}.index.db.folds"

    def segment_path(self, segment: Segment) -> Path:
        """Return the path of a segment before it is packed."""
        return self.root / segment.name

    def packed_path(self, segment: Segment) -> Path:
        """Return the path of a packed segment."""
        return self.root / f"{segment.name}{PACKED}"

    def is_half_packed(self, segment: Segment) -> bool:
        """Return whether a segment is packed, and its file from before is still there."""
        return self.packed_path(segment).exists() and self.segment_path(segment).exists()

    def segments(self, tape: str) -> list[Segment]:
        """Return a tape's sealed segments, oldest first."""
        return self.segments_of(self.stem(tape))

    def segments_of(self, stem: str) -> list[Segment]:
        """Return the sealed segments of the tape with this file name stem, oldest first."""
        return _listed(list_files(self.root, ".*.*-*.jsonl*", prefix=stem))

    def drop(self, tape: str, last: int) -> None:
        """Remove the files of a tape's segments up to an id.

        Raises:
            OSError: The storage failed; some files may remain.
        """
        for segment in self.segments(tape):
            if segment.last_id <= last:
                self.segment_path(segment).unlink(missing_ok=True)
                self.packed_path(segment).unlink(missing_ok=True)

    @contextmanager
    def open_segment(self, segment: Segment) -> Iterator[PartFile]:
        """Open a segment's file, whether it is packed, or is being packed now.

        Raises:
            FileNotFoundError: It is gone.
        """
        packed = self.packed_path(segment)
        with ExitStack() as stack:
            try:
                part = stack.enter_context(open_part(packed))
            except FileNotFoundError:
                try:
                    part = stack.enter_context(open_part(self.segment_path(segment)))
                except FileNotFoundError:
                    part = stack.enter_context(open_part(packed))
            yield part

    def overlaps(self, segment: Segment) -> bool:
        """Return whether a segment's archiving has not happened (yet): its entries are in the live file."""
        head = _header(self.root / f"{segment.name.partition('.')[0]}.jsonl")
        return head is not None and head.id <= segment.last_id

    def raw_segments(self) -> list[Segment]:
        """Return the segments of all tapes that are not, or not completely, packed."""
        return _listed(list_files(self.root, f"{self._workspace}__*.*.*-*.jsonl"))

    def next_segment(self, tape: str, first: int, last: int, now: datetime) -> Segment:
        """Return the segment that the live file becomes when it is archived."""
        moment = now.strftime("%Y%m%dT%H%M%SZ")
        return Segment(f"{self.stem(tape)}.{moment}.{first}-{last}.jsonl", first, last)

    def sessions(self) -> list[str]:
        """Return the session keys that the live files' headers name; or a segment's, if one is damaged."""
        names = set()
        for stem in self.stems():
            live = self.root / f"{stem}.jsonl"
            name = _session(_header(live))
            if name is None and live.exists():
                name = next(filter(None, map(self._named, self.segments_of(stem))), None)
                if name is None:
                    logger.warning("%s names no session: its header cannot be read", live.name)
            if name is not None:
                names.add(name)
        return sorted(names)

    def _named(self, segment: Segment) -> str | None:
        """Return the session key in a segment's header, if it can be read."""
        with suppress(OSError), self.open_segment(segment) as part:
            return _session(_header_of(part, segment.name))
        return None

    def stems(self) -> list[str]:
        """Return the file name stems of all tapes."""
        kinds = (".jsonl", f".jsonl{PACKED}")
        paths = [
            path for kind in kinds for path in list_files(self.root, f"{self._workspace}__*{kind}")
        ]
        return sorted({path.name.partition(".")[0] for path in paths})

    def stem(self, tape: str) -> str:
        """Return the file name stem of a tape."""
        return f"{self._workspace}__{_digest(tape)}"


def _listed(paths: Iterable[Path]) -> list[Segment]:
    """Return the segments of these files, without duplicates, oldest first."""
    found = set()
    for path in paths:
        name = path.name.removesuffix(PACKED)
        if name.endswith(".jsonl"):
            first, _unused, last = name.split(".")[2].partition("-")
            if first.isdecimal() and last.isdecimal():
                found.add(Segment(name, int(first), int(last)))
    return sorted(found, key=lambda segment: (segment.first_id, segment.name))


def is_live(path: Path, fd: int) -> bool:
    """Return whether an open file still is the live file at this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def replace_live_file(path: Path, data: bytes, segment: Segment | None) -> None:
    """Replace the live file; the old one is kept as ``segment`` if one is given.

    Raises:
        OSError: The storage failed; the old live file is in its place.
    """
    sealed = None if segment is None else path.with_name(segment.name)
    fresh = path.with_name(f"{path.name}.new")
    try:
        write_synced(fresh, data)
        if sealed is not None:
            _second_name(path, sealed)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        if sealed is not None:
            sealed.unlink(missing_ok=True)
        raise
    if sealed is not None:
        sealed.chmod(SEALED_FILE)
    sync_directory(path.parent)


def _second_name(path: Path, other: Path) -> None:
    try:
        os.link(path, other)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        # A file system without links.
        fresh = other.with_name(f"{other.name}.new")
        write_synced(fresh, path.read_bytes())
        fresh.rename(other)
    sync_directory(path.parent)


def _header(path: Path) -> TapeEntry | None:
    """Return a live file's header, if there is one that can be read.

    Behind damaged lines it must name this tape: a fork may have a copy of its parent's.
    """
    with suppress(FileNotFoundError), open_part(path) as part:
        return _header_of(part, path.name)
    return None


def _header_of(part: PartFile, name: str) -> TapeEntry | None:
    line, damaged = part.first_line()
    if line and line.entry.name == HEADER_EVENT:
        named = str(line.entry.data.get("session"))
        if not damaged or name.partition(".")[0].endswith(f"__{_digest(named)}"):
            return line.entry
    return None


def _session(head: TapeEntry | None) -> str | None:
    """Return the session key in a header, if there is one."""
    named = head.data.get("session") if head else None
    return named if isinstance(named, str) else None


def _digest(text: str) -> str:
    """Return the 16 digits that stand for a workspace or a session in file names."""
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
