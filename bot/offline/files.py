"""The files of a message: how the prompt describes them, and what can be said of them without a model.

Rule 1: what a file says is evidence of what the file says, never of what the person told.
Rule 2: it says that it cannot look, listen or read, and never acts as if it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FILE = "file:"
"""Begins the name of a passage's source where that is a file; no person's name has a colon."""

_ONE = re.compile(
    r"(?:^|\n)\((?P<kind>image|audio|video|document|voice message)(?P<rest>[^\n]*)\)"
    r"(?=\n|$)(?:\n<quoted>\n(?P<text>(?:> [^\n]*\n)*)</quoted>)?"
)
_WIDTH = 300
_OFFLINE = "I am the offline responder, not a language model"


@dataclass(frozen=True, slots=True)
class FileDescription:
    """A file as a prompt describes it.

    Attributes:
        kind: ``image``, ``audio``, ``video``, ``document`` or ``voice message``.
        name: Its name.
        note: What the prompt says about it beside that.
        text: What it says; empty where that is not known.
    """

    kind: str
    name: str
    note: str
    text: str


def without_files(text: str) -> str:
    """Return a message's text without the description of its files at its end."""
    found = _at_the_end(text)
    return text[: found[0].start()] if found else text


def files_of(text: str) -> tuple[FileDescription, ...]:
    """Return the files that are described at the end of a message."""
    return tuple(map(_shown, _at_the_end(text)))


def _at_the_end(text: str) -> list[re.Match[str]]:
    """Return the descriptions with which a text ends, with nothing between them."""
    run: list[re.Match[str]] = []
    for found in _ONE.finditer(text):
        if run and run[-1].end() != found.start():
            run = []
        run.append(found)
    return run if run and run[-1].end() == len(text) else []


def passages_of(file: FileDescription) -> list[str]:
    """Return what a file says in pieces fit to be quoted."""
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
    """Return what can be said to a message that is nothing but files."""
    return " ".join(dict.fromkeys(_replies(files)))


def _replies(files: Iterable[FileDescription]) -> Iterable[str]:
    for file in files:
        if file.text:
            yield (
                f"I have the words of {file.name}, and can find them again: ask me what it says about"
                f" something. {_OFFLINE}, so I cannot sum it up, and I note nothing about you from it."
            )
        elif file.kind == "image":
            # That it was not seen is said by the turn, for any model that does not see.
            yield "Tell me in words what is in the picture, and I will note that."
        elif file.kind == "voice message":
            yield "Please write to me what you said."
        else:
            why = f": {file.note}" if file.note else ""
            yield f"I have no words of {file.name}{why}."


def _shown(found: re.Match[str]) -> FileDescription:
    name, _, note = found["rest"].strip().partition("; ")
    lines = (found["text"] or "").splitlines()
    return FileDescription(
        found["kind"], name.lstrip("; "), note, "\n".join(line[2:] for line in lines)
    )
