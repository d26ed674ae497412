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
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from hashlib import md5
from pathlib import Path

from filelock import FileLock, Timeout

from bot.core.errors import TapeLocked
from bot.core.files import (
    PRIVATE_FILE,
    list_files,
    private_directory,
    replace_file,
    sync_directory,
    write_synced,
)
from bot.core.i18n import _
from bot.tape.store import Segment
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
            for begun in list_files(self.root, f"{self._workspace}__*.new"):
                begun.unlink()
            for segment in self.raw_segments():
                if self.packed_path(segment).exists() or self.overlaps(segment):
                    self.segment_path(segment).unlink()
            # A process that was killed may have left new names that are not durable; appends must not precede them.
            sync_directory(self.root)
        except BaseException:
            self._lock.release()
            raise

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.release()

    def stem(self, tape: str) -> str:
        """Return the file name stem of a tape."""
        return f"{self._workspace}__{_digest(tape)}"

    def live_path(self, tape: str) -> Path:
        """Return the path of a tape's live file."""
        return self.root / f"{self.stem(tape)}.jsonl"

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

    def segments(self, tape: str) -> list[Segment]:
        """Return a tape's sealed segments, oldest first."""
        return self.segments_of(self.stem(tape))

    def segments_of(self, stem: str) -> list[Segment]:
        """Return the sealed segments of the tape with this file name stem, oldest first."""
        return _listed(list_files(self.root, ".*.*-*.jsonl*", prefix=stem))

    def raw_segments(self) -> list[Segment]:
        """Return the segments of all tapes that are not, or not completely, packed."""
        return _listed(list_files(self.root, f"{self._workspace}__*.*.*-*.jsonl"))

    def next_segment(self, tape: str, first: int, last: int, now: datetime) -> Segment:
        """Return the segment that the live file becomes when it is archived."""
        moment = now.strftime("%Y%m%dT%H%M%SZ")
        return Segment(f"{self.stem(tape)}.{moment}.{first}-{last}.jsonl", first, last)

    def drop(self, tape: str, last: int, first: int = 1) -> None:
        """Remove the files of a tape's segments that end in an id range; after an error some may remain."""
        for segment in self.segments(tape):
            if first <= segment.last_id <= last:
                self.segment_path(segment).unlink(missing_ok=True)
                self.packed_path(segment).unlink(missing_ok=True)

    @contextmanager
    def open_segment(self, segment: Segment) -> Iterator[PartFile]:
        """Open a segment's file, whether it is packed, or is being packed now."""
        packed, raw = self.packed_path(segment), self.segment_path(segment)
        with ExitStack() as stack:
            for path in (packed, raw):
                with suppress(FileNotFoundError):
                    part = stack.enter_context(open_part(path))
                    break
            else:
                part = stack.enter_context(open_part(packed))
            yield part

    def overlaps(self, segment: Segment) -> bool:
        """Return whether a segment's archiving has not happened (yet): its entries are in the live file."""
        with suppress(FileNotFoundError):
            live = self.root / f"{segment.name.partition('.')[0]}.jsonl"
            with open_part(live) as part:
                head = part.header()
                return head is not None and head.id <= segment.last_id
        return False

    def stems(self) -> list[str]:
        """Return the file name stems of all tapes."""
        names = (path.name for path in list_files(self.root, f"{self._workspace}__*.jsonl*"))
        kinds = (".jsonl", f".jsonl{PACKED}")
        return sorted({name.partition(".")[0] for name in names if name.endswith(kinds)})

    def sessions(self) -> list[str]:
        """Return the session keys that the live files' headers name; or a segment's, if one is damaged."""
        names = set()
        for stem in self.stems():
            live = self.root / f"{stem}.jsonl"
            with suppress(FileNotFoundError):
                named = _session(open_part(live))
                if named is None:
                    sealed = map(self.open_segment, self.segments_of(stem))
                    named = next(filter(None, map(_session, sealed)), None)
                if named is None:
                    logger.warning("%s names no session: its header cannot be read", live.name)
                else:
                    names.add(named)
        return sorted(names)


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


def seal_live_file(path: Path, data: bytes, segment: Segment) -> None:
    """Let the live file be a segment, and put a new one in its place by one rename."""
    sealed, fresh = path.with_name(segment.name), path.with_name(f"{path.name}.new")
    try:
        write_synced(fresh, data)
        try:
            os.link(path, sealed)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise
            # A file system without links.
            replace_file(sealed, path.read_bytes())
        sync_directory(path.parent)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
            # If the rename has happened all the same, nothing else has the entries.
            if sealed.samefile(path):
                sealed.unlink()
        raise
    with suppress(FileNotFoundError):
        # Else it has been packed already.
        sealed.chmod(SEALED_FILE)
    sync_directory(path.parent)


def _session(opening: AbstractContextManager[PartFile]) -> str | None:
    """Return the session key in a file's header, if it can be read."""
    with opening as part:
        head = part.header()
    named = head.data.get("session") if head else None
    return named if isinstance(named, str) else None


def _digest(text: str) -> str:
    """Return the 16 digits that stand for a workspace or a session in file names."""
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
