"""Add images to chat messages.

Rule 1: an image is shown in the message that it came with, after the text that describes it.
Rule 2: only the newest are shown, and none that exceeds the providers' size limits.
Rule 3: for an image that is not shown, the text says so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import anyio.to_thread

from bot.agent.agent import ImageLoader
from bot.agent.context import RenderedMessages
from bot.agent.texts import known_text
from bot.core.i18n import _, ngettext
from bot.llm.base import CapabilityProfile, ChatMessage
from bot.memory.records.attachments import (
    EntryAttachment,
    attachments_in,
    describe_attachments,
)
from bot.tape.entries import TapeEntry

MOST_IMAGES = 10
_LEAVE_TOGETHER = 5
LARGEST_IMAGE = 5 * 1024 * 1024
"""Maximum bytes of one image, encoded in base64: Anthropic's limit."""

LARGEST_TOGETHER = 20 * 1024 * 1024
"""Maximum bytes of all images of a request, encoded in base64."""

IMAGE_PLACEHOLDER_PREFIX = "image:"
"""Prefix of the placeholder URL of an image, followed by its blob store name."""

_MOST_UNREAD_NAMED = 10
NO_VISION_NOTICE = "you cannot see images with this model"
_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_OLD = "no longer shown"
_LARGE = "too large to be shown"
_GONE = "not shown: it cannot be read any more"
_NOWHERE = "not shown"


@dataclass(frozen=True, slots=True)
class _Image:
    """An image in view.

    Attributes:
        entry: The message that it came with.
        place: Index of the image among the message's attachments.
        file: The attachment as recorded on the tape.
    """

    entry: TapeEntry
    place: int
    file: EntryAttachment


@dataclass(frozen=True, slots=True)
class _Shown:
    """How an image is rendered: its data URL, or a remark on why it is missing."""

    url: str = ""
    remark: str = ""


async def with_images(
    history: Sequence[ChatMessage],
    entries: Sequence[TapeEntry],
    rendered: RenderedMessages,
    *,
    profile: CapabilityProfile,
    images: ImageLoader | None,
    named: bool = False,
) -> list[ChatMessage]:
    """Return the history with images added to their messages, or remarks on why they are missing.

    Args:
        history: Rendered messages; not modified.
        entries: The entries that they were rendered from.
        rendered: Rendered messages by entry id.
        profile: The model's capabilities.
        images: Loader of images; None if there is no store.
        named: Whether names of images stand for their content.
    """
    found = _images_of(entries, rendered)
    room = LARGEST_TOGETHER
    shown = []
    for image, old in _newest_first(found):
        file = image.file
        other = await _shown(file, room, profile, images, old=old)
        if other.url:
            room -= len(_address(file.mime, "")) + _encoded(file.size)
        if other.url and named:
            other = _Shown(f"{IMAGE_PLACEHOLDER_PREFIX}{file.blob}")
        shown.append((image, other))
    return _with_shown(history, rendered, shown)


def _images_of(entries: Sequence[TapeEntry], rendered: RenderedMessages) -> list[_Image]:
    return [
        _Image(entry, place, file)
        for entry in entries
        if "attachments" in entry.meta and entry.id in rendered
        for place, file in enumerate(attachments_in(entry.meta))
        if file.is_viewable_image
    ]


def _newest_first(images: Sequence[_Image]) -> Iterator[tuple[_Image, bool]]:
    """Yield images, newest first, each with whether it is too old to be shown."""
    # Several are dropped at once, so that not every new image changes the start of the prompt.
    too_many = -(-max(0, len(images) - MOST_IMAGES) // _LEAVE_TOGETHER) * _LEAVE_TOGETHER
    for age, image in enumerate(reversed(images)):
        yield image, age >= len(images) - too_many


def _with_shown(
    history: Sequence[ChatMessage],
    rendered: RenderedMessages,
    newest_first: Sequence[tuple[_Image, _Shown]],
) -> list[ChatMessage]:
    if not newest_first:
        return list(history)
    shown = newest_first[::-1]
    fresh: dict[int, ChatMessage] = {}
    for entry in {image.entry.id: image.entry for image, _room in shown}.values():
        message = rendered[entry.id]
        own = {image.place: other for image, other in shown if image.entry.id == entry.id}
        fresh[id(message)] = _changed(message, entry, own)
    return [fresh.get(id(message), message) for message in history]


def unreadable_files_note(entries: Sequence[TapeEntry], profile: CapabilityProfile) -> str | None:
    """Return a note on files of the answered messages that the model could not see, hear or read.

    Args:
        entries: The messages that are answered.
        profile: The model's capabilities.
    """
    files = [file for entry in entries for file in attachments_in(entry.meta)]
    lines = []
    count = sum(file.is_viewable_image for file in files)
    if count and not profile.vision:
        kept = ngettext(
            "I cannot see images with this model; the picture is kept.",
            "I cannot see images with this model; the pictures are kept.",
            count,
        )
        lines.append(f"_{kept}_")
    unheard = next((file for file in files if file.is_own_voice and file.note), None)
    if unheard is not None:
        told = _(
            "I could not listen to your voice message: {note}.", note=known_text(unheard.note or "")
        )
        lines.append(f"_{told}_")
    unread = [file for file in files if not file.is_own_voice and file.note]
    lines += [_unread_line(file) for file in unread[:_MOST_UNREAD_NAMED]]
    if (more := len(unread) - _MOST_UNREAD_NAMED) > 0:
        told = ngettext("{n} more file was not read.", "{n} more files were not read.", more)
        lines.append(f"_{told}_")
    return "\n".join(lines) or None


def _unread_line(file: EntryAttachment) -> str:
    name = file.name.replace("`", "'")
    note = known_text(file.note or "")
    if file.text:
        return _("_I read only a part of_ {file}: {note}.", file=f"`{name}`", note=note)
    return _("_I could not read_ {file}: {note}.", file=f"`{name}`", note=note)


async def _shown(
    file: EntryAttachment,
    room: int,
    profile: CapabilityProfile,
    images: ImageLoader | None,
    *,
    old: bool,
) -> _Shown:
    if not profile.vision:
        return _Shown(remark=NO_VISION_NOTICE)
    if (remark := _unfit(file, room, known=images is not None, old=old)) is not None:
        return _Shown(remark=remark)
    data = await images(file.blob) if images is not None and file.blob is not None else None
    if data is None:
        return _Shown(remark=_GONE)
    if _encoded(len(data)) > min(LARGEST_IMAGE, room):
        return _Shown(remark=_LARGE)
    return _Shown(url=await anyio.to_thread.run_sync(_data_url, file.mime, data))


def _unfit(file: EntryAttachment, room: int, *, known: bool, old: bool) -> str | None:
    """Return why an image is not shown to a model with vision, as far as the record alone tells."""
    if not known or file.blob is None or file.mime not in _TYPES:
        return _NOWHERE
    if old:
        return _OLD
    if _encoded(file.size) > LARGEST_IMAGE:
        return _LARGE
    return _OLD if _encoded(file.size) > room else None


def _encoded(size: int) -> int:
    return -(-size // 3) * 4


def _data_url(mime: str, data: bytes) -> str:
    return _address(mime, base64.b64encode(data).decode())


def _address(mime: str, encoded: str) -> str:
    return f"data:{mime};base64,{encoded}"


def _changed(message: ChatMessage, entry: TapeEntry, shown: dict[int, _Shown]) -> ChatMessage:
    """Return a message with its images after its text, and remarks for those that are missing."""
    content = message["content"]
    plain = describe_attachments(entry.meta)
    remarks = {place: other.remark for place, other in shown.items() if other.remark}
    if isinstance(content, str):
        content = content.removesuffix(plain) + describe_attachments(entry.meta, remarks)
    parts = [_image_part(other.url) for other in shown.values() if other.url]
    if not parts:
        return {**message, "content": content}
    return {**message, "content": [{"type": "text", "text": content}, *parts]}


def _image_part(url: str) -> ChatMessage:
    return {"type": "image_url", "image_url": {"url": url}}
