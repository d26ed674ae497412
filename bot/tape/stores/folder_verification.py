"""Verify the tapes of a folder, even beside the process that writes them. Blocking.

``bot.tape.verification`` checks the lines; this module checks that the files are there.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.errors import TapeError, TapeNotFound
from bot.core.i18n import _
from bot.tape.store import HEADER_EVENT, last_dropped
from bot.tape.stores.folder import TapeFolder, is_live
from bot.tape.stores.parts import PartFile, open_part
from bot.tape.verification import IntegrityProblem, TapePart, TapeVerifier

_TRIES = 20


@dataclass(slots=True)
class VerificationReport:
    """The result of a verification.

    Attributes:
        tapes: How many tapes were checked.
        files: How many files they have.
        entries: How many entries they have.
        problems: The problems found.
    """

    tapes: int = 0
    files: int = 0
    entries: int = 0
    problems: list[IntegrityProblem] = field(default_factory=list)


def verify_folder(root: Path, workspace: str, session: str | None = None) -> VerificationReport:
    """Verify the tapes of a workspace, or one of them.

    Raises:
        TapeNotFound: There is no such tape.
        TapeError: A tape was archived or reset again and again during its verification.
    """
    folder = TapeFolder(root, workspace)
    stems = folder.stems()
    if session is not None:
        if folder.stem(session) not in stems:
            raise TapeNotFound(_("there is no tape {session}", session=session))
        stems = [folder.stem(session)]
    report = VerificationReport(len(stems))
    for stem in stems:
        try:
            check, files = _checked(folder, stem)
        except OSError as error:
            problem = IntegrityProblem(f"{stem}.jsonl", "", _unreadable(error))
            report.problems.append(problem)
            continue
        report.files += files
        report.entries += check.entries
        report.problems += check.problems
    return report


def _checked(folder: TapeFolder, stem: str) -> tuple[TapeVerifier, int]:
    for _unused in range(_TRIES):
        # Files may be archived or packed at any moment; then the tape is checked again.
        with suppress(FileNotFoundError):
            return _check(folder, stem)
    raise TapeError(_("the files {stem} change too quickly to be checked: try again", stem=stem))


def _check(folder: TapeFolder, stem: str) -> tuple[TapeVerifier, int]:
    """Verify a tape's files; return the verifier and the number of files."""
    path = folder.root / f"{stem}.jsonl"
    segments = folder.segments_of(stem)
    with ExitStack() as stack:
        live, head = None, None
        with suppress(FileNotFoundError):
            opened = stack.enter_context(open_part(path))
            # What follows was never acknowledged.
            live = PartFile(opened.fd, opened.tail().end)
            line, damaged = live.first_line()
            head = line.entry if line and line.entry.name == HEADER_EVENT else None
            if head and damaged and folder.stem(str(head.data.get("session"))) != stem:
                # The copy of its parent's header behind the damaged header of a fork.
                head = None
            segments = folder.segments_of(stem)
        if head is not None:
            # Others were dropped, or their archiving did not happen.
            low, high = last_dropped(head), head.id
            segments = [one for one in segments if low < one.first_id and one.last_id < high]
        named = head.data.get("session") if head else None
        check = TapeVerifier(named if isinstance(named, str) else None)
        if isinstance(named, str) and folder.stem(named) != stem:
            what = _("it belongs to another session: {named!r}", named=named)
            check.report(what, path.name)
        for segment in segments:
            check.begin_part(TapePart(segment.name, (segment.first_id, segment.last_id)))
            try:
                with folder.open_segment(segment) as part:
                    _lines(check, part)
            except FileNotFoundError:
                raise
            except OSError as error:
                check.report(_unreadable(error), where="")
                check.end_part()
        check.begin_part(TapePart(path.name))
        if live is None:
            check.report(_("the live file is missing"), where="")
        else:
            _lines(check, live)
            if not is_live(path, live.fd):
                # A reset may have removed segments before they were read.
                raise FileNotFoundError
    check.finish()
    return check, len(segments) + (live is not None)


def _lines(check: TapeVerifier, part: PartFile) -> None:
    """Verify all lines of a file and end the part."""
    end = 0
    for offset, raw in part.raw_lines():
        check.check_line(offset, raw)
        end = offset + len(raw) + 1
    check.end_part(cut=not part.packed and end > part.size)


def _unreadable(error: OSError) -> str:
    return _("the storage cannot read it: {strerror}", strerror=error.strerror)
