"""What came with a message beside its text, as the tape has it: in words, and what it costs. Pure.

Rule 1: a file's description is the last thing of its message, and the same for ever.
Rule 2: what a file says is quoted: it is never the person's own words. Only a voice message's text
    is, and that stands in the message itself.
Rule 3: a description is one line, whatever a file is called; damage on the tape is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.llm.base import estimate_tokens
from bot.memory.prompt_escaping import escape_message, quote_block, replace_lone_surrogates

IMAGE_TOKENS = 1_000
"""About what an image costs a model that sees it."""

_KINDS = frozenset({"image", "voice", "audio", "video", "document"})
_NOT_IN_NAMES = re.compile(r"[<>\[\];:\x00-\x1f\x7f\u2028\u2029]+")
_LONGEST_NAME = 80
_LONGEST_NOTE = 300


@dataclass(frozen=True, slots=True)
class EntryAttachment:
    """A file of a message; the fields are those of ``bot.bus.Attachment``.

    Attributes:
        kind: ``image``, ``voice``, ``audio``, ``video`` or ``document``.
        name: On one line, without the signs that mark a speaker or a block.
        mime: Its media type.
        size: Bytes; 0 where unknown.
        blob: Its name in the blob store; None where it was not kept.
        text: What it says; None where that is not known.
        note: Why it was not kept or not read.
    """

    kind: str
    name: str
    mime: str = ""
    size: int = 0
    blob: str | None = None
    text: str | None = None
    note: str | None = None

    @property
    def is_viewable_image(self) -> bool:
        """Whether it is an image that a model could be shown."""
        return self.kind == "image" and self.blob is not None and self.note is None

    @property
    def third_party_text(self) -> str:
        """What it says, where that is not the person's own words; empty where nothing is known."""
        return "" if self.kind == "voice" or self.text is None else self.text.strip()


def attachments_in(meta: Mapping[str, Any]) -> tuple[EntryAttachment, ...]:
    """Return the files that an entry's meta names."""
    given = meta.get("attachments")
    return tuple(map(_attached, filter(_is_one, given))) if isinstance(given, list) else ()


def describe_attachments(
    meta: Mapping[str, Any],
    remarks: Mapping[int, str] | None = None,
    *,
    excerpt: int | None = None,
) -> str:
    """Return the files of a message as lines behind its text; empty where it has none.

    Args:
        meta: The entry's.
        remarks: Words that are added to the description of the file at this place.
        excerpt: The most characters quoted of each; None quotes all that was read.
    """
    parts = []
    for place, one in enumerate(attachments_in(meta)):
        words = [one.note or "", (remarks or {}).get(place, "")]
        parts.append("\n" + _line(one, [one_line(word, _LONGEST_NOTE) for word in words if word]))
        if one.third_party_text:
            parts.append(quote_block(_cut(one.third_party_text, excerpt)))
    return replace_lone_surrogates("".join(parts))


def attachment_tokens(meta: Mapping[str, Any]) -> int:
    """Return an estimate of what a message's files cost in a prompt."""
    files = attachments_in(meta)
    if not files:
        return 0
    shown = sum(one.is_viewable_image for one in files)
    return shown * IMAGE_TOKENS + estimate_tokens(describe_attachments(meta))


def _line(one: EntryAttachment, words: list[str]) -> str:
    what = f"{one.kind} {one.name}"
    if one.kind == "voice":
        what = "voice message"
        if one.text is not None:
            words = ["transcribed", *words]
            return escape_message(f"({what}, {'; '.join(words)})")
    return escape_message(f"({'; '.join([what, *words])})")


def _attached(given: Mapping[str, Any]) -> EntryAttachment:
    def text(field: str) -> str | None:
        value = given.get(field)
        return value if isinstance(value, str) else None

    size = given.get("size")
    return EntryAttachment(
        kind=str(given["kind"]),
        name=display_file_name(text("name") or ""),
        mime=text("mime") or "",
        size=size if type(size) is int else 0,
        blob=text("blob"),
        text=text("text"),
        note=text("note"),
    )


def display_file_name(name: str) -> str:
    """Return a file's name as it may stand in a prompt: one line, not long, no brackets."""
    plain = " ".join(_NOT_IN_NAMES.sub(" ", name).split())
    if len(plain) > _LONGEST_NAME:
        # The end says what kind of file it is.
        plain = f"{plain[: _LONGEST_NAME - 11]}…{plain[-10:]}"
    return plain or "file"


def _is_one(given: object) -> bool:
    return isinstance(given, dict) and given.get("kind") in _KINDS


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, cut to so many characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    return f"{text[:longest].rstrip()} … ({len(text) - longest} more characters)"
