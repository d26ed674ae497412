"""Parse the descriptions of a message's files in the prompt, and reply to files without a model.

Rule 1: the text of a file is evidence of the file's content, never of what the person said.
Rule 2: a reply says that the responder cannot see, hear or read a file, and never pretends that it
    did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.offline.program_words import translated

FILE = "file:"
"""Prefix of a passage's source if it is a file; no person's name has a colon."""

_DESCRIPTION = LazyPattern(
    r"(?:^|\n)\((?P<kind>image|audio|video|document|voice message)(?P<rest>[^\n]*)\)"
    r"(?=\n|$)(?:\n<quoted>\n(?P<text>(?:> [^\n]*\n)*)</quoted>)?"
)
_WIDTH = 300


@dataclass(frozen=True, slots=True)
class FileDescription:
    """A file as a prompt describes it.

    Attributes:
        kind: ``image``, ``audio``, ``video``, ``document`` or ``voice message``.
        name: Name of the file.
        note: Further remarks of the prompt.
        text: Text of the file; empty if unknown.
    """

    kind: str
    name: str
    note: str
    text: str


def without_files(text: str) -> str:
    """Return a message's text without the descriptions of its files at the end."""
    descriptions = _descriptions_at_end(text)
    return text[: descriptions[0].start()] if descriptions else text


def files_of(text: str) -> tuple[FileDescription, ...]:
    """Parse the descriptions of files at the end of a message."""
    return tuple(map(_file_description, _descriptions_at_end(text)))


def _descriptions_at_end(text: str) -> list[re.Match[str]]:
    """Return the uninterrupted run of descriptions at the end of a text."""
    run: list[re.Match[str]] = []
    for description in _DESCRIPTION.finditer(text):
        if run and run[-1].end() != description.start():
            run = []
        run.append(description)
    return run if run and run[-1].end() == len(text) else []


def passages_of(file: FileDescription) -> list[str]:
    """Return the text of a file in pieces short enough to quote."""
    pieces = []
    for line in file.text.split("\n"):
        rest = line.strip()
        while len(rest) > _WIDTH:
            end = rest.rfind(" ", _WIDTH // 2, _WIDTH)
            end = end if end > 0 else _WIDTH
            pieces.append(rest[:end])
            rest = rest[end:].strip()
        if rest:
            pieces.append(rest)
    return pieces


def reply_to_files(files: Sequence[FileDescription]) -> str:
    """Return the reply to a message that consists of files only."""
    return " ".join(dict.fromkeys(_replies(files)))


def _replies(files: Iterable[FileDescription]) -> Iterable[str]:
    for file in files:
        if file.text:
            yield _(
                "I have the text of {name} and can search it: ask me what it says about something. I am "
                "the offline responder, not a language model, so I cannot summarise it, and I do not note "
                "facts about you from it.",
                name=file.name,
            )
        elif file.kind == "image":
            # The turn already says, for any model without vision, that the image was not seen.
            yield _("Tell me what is in the picture, and I will note it.")
        elif file.kind == "voice message":
            yield _("Please write to me what you said.")
        elif file.note:
            yield _("I have no text of {name}: {note}.", name=file.name, note=translated(file.note))
        else:
            yield _("I have no text of {name}.", name=file.name)


def _file_description(match: re.Match[str]) -> FileDescription:
    name, _sep, note = match["rest"].strip().partition("; ")
    lines = (match["text"] or "").splitlines()
    return FileDescription(
        match["kind"], name.lstrip("; "), note, "\n".join(line[2:] for line in lines)
    )
