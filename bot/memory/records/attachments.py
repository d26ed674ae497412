"""Read attachments from an entry's meta, describe them in text, and estimate their tokens. Pure.

Rule 1: a file's description follows its message's text, and never changes.
Rule 2: a file's content is quoted; it is never the person's own words. Only a voice message's
    transcript is, and that is in the message's text.
Rule 3: a description is one line, whatever the file's name; malformed records are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bot.core.patterns import LazyPattern
from bot.core.reasons import parse_reason, reason_json
from bot.llm.base import estimate_tokens
from bot.memory.records.prompt_escaping import (
    escape_message,
    quote_block,
    replace_lone_surrogates,
)

IMAGE_TOKENS = 1_000
"""Estimated tokens of an image for a model that sees it."""

_KINDS = frozenset({"image", "voice", "audio", "video", "document"})
_NOT_IN_NAMES = LazyPattern(r"[<>\[\];:\x00-\x1f\x7f\u2028\u2029]+")
_LONGEST_NAME = 80
_LONGEST_NOTE = 300


@dataclass(frozen=True, slots=True)
class EntryAttachment:
    """A file of a message; the fields are those of ``bot.bus.messages.Attachment``.

    Attributes:
        kind: ``image``, ``voice``, ``audio``, ``video`` or ``document``.
        name: Display name on one line, without characters that mark a speaker or block.
        mime: Media type.
        size: Size in bytes; 0 if unknown.
        blob: Name in the blob store; None if the file was not kept.
        text: Extracted text or transcript; None if there is none.
        note: Why the file was not kept or not read, perhaps as a ``Reason``.
        url: Address of a web page that a tool read; None for a file that a person sent.
        quoted: Whether it is a file of the message that the person's message replies to.
    """

    kind: str
    name: str
    mime: str = ""
    size: int = 0
    blob: str | None = None
    text: str | None = None
    note: str | None = None
    url: str | None = None
    quoted: bool = False

    @property
    def is_viewable_image(self) -> bool:
        """Whether it is an image that can be shown to a model."""
        return self.kind == "image" and self.blob is not None and self.note is None

    @property
    def third_party_text(self) -> str:
        """Text of the file that is not the person's own words; empty for their voice messages."""
        return "" if self.is_own_voice or self.text is None else self.text.strip()

    @property
    def is_own_voice(self) -> bool:
        """Whether it is the person's own voice message, whose transcript is in the message."""
        return self.kind == "voice" and not self.quoted


def attachments_in(meta: Mapping[str, Any]) -> tuple[EntryAttachment, ...]:
    """Return the files in an entry's meta."""
    given = meta.get("attachments")
    return tuple(map(_attached, filter(_is_one, given))) if isinstance(given, list) else ()


def attachment_record(entry_attachment: EntryAttachment) -> dict[str, Any]:
    """Return a file as it is written to an entry's meta."""
    fields = asdict(entry_attachment).items()
    record = {key: value for key, value in fields if value is not None and value is not False}
    return {**record, "note": reason_json(record["note"])} if "note" in record else record


def describe_attachments(
    meta: Mapping[str, Any],
    remarks: Mapping[int, str] | None = None,
    *,
    excerpt: int | None = None,
) -> str:
    """Return lines that describe the files in a message's meta; empty if it has none.

    ``remarks`` are words to add to a file's description, by position; ``excerpt`` limits the quoted characters.
    """
    parts = []
    for place, entry_attachment in enumerate(attachments_in(meta)):
        words = [entry_attachment.note or "", (remarks or {}).get(place, "")]
        if entry_attachment.quoted:
            words.insert(0, "of the message that is replied to")  # for the model
        parts.append(
            "\n"
            + _line(entry_attachment, [one_line(word, _LONGEST_NOTE) for word in words if word])
        )
        if entry_attachment.third_party_text:
            parts.append(quote_block(_cut(entry_attachment.third_party_text, excerpt)))
    return replace_lone_surrogates("".join(parts))


def attachment_tokens(meta: Mapping[str, Any]) -> int:
    """Return the estimated tokens of a message's files in a prompt."""
    files = attachments_in(meta)
    if not files:
        return 0
    shown = sum(entry_attachment.is_viewable_image for entry_attachment in files)
    return shown * IMAGE_TOKENS + estimate_tokens(describe_attachments(meta))


def _line(entry_attachment: EntryAttachment, words: list[str]) -> str:
    what = f"{entry_attachment.kind} {entry_attachment.name}"
    if entry_attachment.kind == "voice":
        what = "voice message"  # for the model
        if entry_attachment.text is not None:
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
        note=parse_reason(given.get("note")) or None,
        url=text("url"),
        quoted=given.get("quoted") is True,
    )


def display_file_name(name: str) -> str:
    """Return a file's name for a prompt: one line, shortened, without brackets."""
    plain = " ".join(_NOT_IN_NAMES.sub(" ", name).split())
    if len(plain) > _LONGEST_NAME:
        # Keeps the end, which has the extension.
        plain = f"{plain[: _LONGEST_NAME - 11]}…{plain[-10:]}"
    return plain or "file"


def _is_one(given: object) -> bool:
    return isinstance(given, dict) and given.get("kind") in _KINDS


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, shortened to ``longest`` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    return f"{text[:longest].rstrip()} … ({len(text) - longest} more characters)"  # for the model
