"""Verify the tapes of a folder, even beside the process that writes them. Blocking.

``bot.tape.verification`` checks the lines; this module checks that the files are there.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.errors import TapeError, TapeNotFound
from bot.core.i18n import _
from bot.tape.store import last_dropped
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.parts import PartFile, is_at, open_part
from bot.tape.verification import IntegrityProblem, TapePart, TapeVerifier

_TRIES = 20


@dataclass(slots=True)
class VerificationReport:
    """How many tapes, files and entries were verified, and the problems found."""

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
        for _unused in range(_TRIES):
            # Files may be archived or packed at any moment; then the tape is checked again.
            with suppress(FileNotFoundError):
                check, files = _check(folder, stem)
                break
        else:
            raise TapeError(
                _("the files {stem} change too quickly to be checked: try again", stem=stem)
            )
        report.files += files
        report.entries += check.entries
        report.problems += check.problems
    return report


def _check(folder: TapeFolder, stem: str) -> tuple[TapeVerifier, int]:
    """Verify a tape's files; return the verifier and the number of files."""
    path = folder.root / f"{stem}.jsonl"
    with ExitStack() as stack:
        live = head = None
        check = TapeVerifier(None)
        check.begin_part(TapePart(path.name))
        try:
            opened = stack.enter_context(open_part(path))
            # What follows was never acknowledged.
            live = PartFile(opened.fd, opened.tail().end)
            head = live.header()
        except FileNotFoundError:
            check.report(_("the live file is missing"), where="")
        except OSError as error:
            check.report(_unreadable(error), where="")
        segments = folder.segments_of(stem)
        if head is not None:
            # Others were dropped, or their archiving did not happen.
            low, high = last_dropped(head), head.id
            segments = [one for one in segments if low < one.first_id and one.last_id < high]
            named = head.data.get("session")
            check.tape = named if isinstance(named, str) else None
            if check.tape is not None and folder.stem(check.tape) != stem:
                check.report(_("it belongs to another session: {named!r}", named=named), where="")
        for segment in segments:
            check.begin_part(TapePart(segment.name, (segment.first_id, segment.last_id)))
            try:
                with folder.open_segment(segment) as part:
                    check.check_lines(part.raw_lines())
            except FileNotFoundError:
                raise
            except OSError as error:
                check.report(_unreadable(error), where="")
            check.end_part()
        if live is not None:
            check.begin_part(TapePart(path.name))
            check.check_lines(live.raw_lines())
            check.end_part()
            if not is_at(path, live.fd):
                # A reset may have removed segments before they were read.
                raise FileNotFoundError
    check.finish()
    return check, len(segments) + (live is not None)


def _unreadable(error: OSError) -> str:
    return _("the storage cannot read it: {strerror}", strerror=error.strerror)
