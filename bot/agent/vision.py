"""Images for models that see, and honest words for those that do not.

Rule 1: an image is shown in the message that it came with, behind the text that describes it.
Rule 2: only the newest are shown, and none that providers would refuse for its size.
Rule 3: of an image that is not shown, the text says so.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import anyio.to_thread

from bot.agent.agent import ImageLoader
from bot.agent.context import RenderedMessages
from bot.llm.base import CapabilityProfile, ChatMessage
from bot.memory.attachments import EntryAttachment, attachments_in, describe_attachments
from bot.tape.entries import TapeEntry

MOST_IMAGES = 10
_LEAVE_TOGETHER = 5
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes of one image as it is sent, in base64: what Anthropic takes at most."""

LARGEST_TOGETHER = 20 * 1024 * 1024
"""Bytes of all images of a request, in base64."""

IMAGE_PLACEHOLDER_PREFIX = "image:"
"""Begins what stands for an image where its content is not shown; its name in the blob store follows."""

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
        entry: The message it came with.
        place: Which of its files it is.
        file: What the tape says of it.
    """

    entry: TapeEntry
    place: int
    file: EntryAttachment


@dataclass(frozen=True, slots=True)
class _Shown:
    """What becomes of an image: an address that holds it, or why there is none."""

    url: str = ""
    remark: str = ""


async def with_images(
    history: Sequence[ChatMessage],
    entries: Sequence[TapeEntry],
    rendered: RenderedMessages,
    *,
    profile: CapabilityProfile,
    images: ImageLoader | None,
) -> list[ChatMessage]:
    """Return the history in which messages that came with images show them, or say why not.

    Args:
        history: Messages as they were rendered; none of them is changed.
        entries: What they were rendered from.
        rendered: Which message an entry became.
        profile: What the model can do.
        images: Where the images are.
    """
    found = _images_of(entries, rendered)
    room = LARGEST_TOGETHER
    shown = []
    for image, old in _newest_first(found):
        one = await _shown(image.file, room, profile, images, old=old)
        room -= len(one.url)
        shown.append((image, one))
    return _with_shown(history, rendered, shown)


def with_placeholders(
    history: Sequence[ChatMessage],
    entries: Sequence[TapeEntry],
    rendered: RenderedMessages,
    *,
    vision: bool,
    taken: Collection[str] | None,
) -> list[ChatMessage]:
    """Return the same history again, with the names of images in the place of their content.

    Args:
        history: As for ``with_images``.
        entries: As there.
        rendered: As there.
        vision: Whether the model saw images.
        taken: Names in the blob store of those that it was shown; None where there was no store.
    """
    room = LARGEST_TOGETHER
    shown = []
    for image, old in _newest_first(_images_of(entries, rendered)):
        file, one = image.file, _Shown(remark=_GONE)
        if not vision:
            one = _Shown(remark=NO_VISION_NOTICE)
        elif (remark := _unfit(file, room, known=taken is not None, old=old)) is not None:
            one = _Shown(remark=remark)
        elif file.blob in (taken or ()):
            one = _Shown(url=f"{IMAGE_PLACEHOLDER_PREFIX}{file.blob}")
            room -= len(_address(file.mime, "")) + _encoded(file.size)
        shown.append((image, one))
    return _with_shown(history, rendered, shown)


def _images_of(entries: Sequence[TapeEntry], rendered: RenderedMessages) -> list[_Image]:
    return [
        _Image(entry, place, file)
        for entry in entries
        if "attachments" in entry.meta and entry.id in rendered
        for place, file in enumerate(attachments_in(entry.meta))
        if file.is_viewable_image
    ]


def _newest_first(found: Sequence[_Image]) -> Iterator[tuple[_Image, bool]]:
    """Yield images, and whether each is too old: the newest come first to the room there is."""
    # Several leave at once, so that not every new image changes the prompt's beginning.
    too_many = -(-max(0, len(found) - MOST_IMAGES) // _LEAVE_TOGETHER) * _LEAVE_TOGETHER
    for age, image in enumerate(reversed(found)):
        yield image, age >= len(found) - too_many


def _with_shown(
    history: Sequence[ChatMessage],
    rendered: RenderedMessages,
    newest_first: Sequence[tuple[_Image, _Shown]],
) -> list[ChatMessage]:
    shown = newest_first[::-1]
    fresh: dict[int, ChatMessage] = {}
    for entry in {image.entry.id: image.entry for image, _ in shown}.values():
        message = rendered[entry.id]
        own = {image.place: one for image, one in shown if image.entry.id == entry.id}
        fresh[id(message)] = _changed(message, entry, own)
    return [fresh.get(id(message), message) for message in history]


def unreadable_files_note(entries: Sequence[TapeEntry], profile: CapabilityProfile) -> str | None:
    """Return what an answer must add where its model could not see, hear or read what it answers.

    Args:
        entries: The messages that are answered.
        profile: What the model can do.
    """
    files = [file for entry in entries for file in attachments_in(entry.meta)]
    lines = []
    count = sum(file.is_viewable_image for file in files)
    if count and not profile.vision:
        kept = "the picture is kept" if count == 1 else "the pictures are kept"
        lines.append(f"_I cannot see images with this model; {kept}._")
    unheard = next((file for file in files if file.kind == "voice" and file.note), None)
    if unheard is not None:
        lines.append(f"_I could not listen to your voice message: {unheard.note}._")
    unread = [file for file in files if file.kind != "voice" and file.note]
    lines += [_unread_line(file) for file in unread[:_MOST_UNREAD_NAMED]]
    if (more := len(unread) - _MOST_UNREAD_NAMED) > 0:
        lines.append(f"_{more} more files were not read._")
    return "\n".join(lines) or None


def _unread_line(file: EntryAttachment) -> str:
    name = file.name.replace("`", "'")
    what = "I read only a part of" if file.text else "I could not read"
    return f"_{what}_ `{name}`: {file.note}."


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
    """Return why a seeing model is not shown an image, as far as that can be said without it."""
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
    """Return a message with its images behind its text, and words for those that are not shown."""
    content = message["content"]
    plain = describe_attachments(entry.meta)
    remarks = {place: one.remark for place, one in shown.items() if one.remark}
    if isinstance(content, str):
        content = content.removesuffix(plain) + describe_attachments(entry.meta, remarks)
    parts = [_image_part(one.url) for one in shown.values() if one.url]
    if not parts:
        return {**message, "content": content}
    return {**message, "content": [{"type": "text", "text": content}, *parts]}


def _image_part(url: str) -> ChatMessage:
    return {"type": "image_url", "image_url": {"url": url}}


class ImageTracker:
    """Images by their name in the blob store, but for those that the model does not take.

    A provider refuses a whole request for one picture that it cannot read: without this book, that
    picture would silence its session until it leaves the view.

    Args:
        images: Where they are; None where there are none to show.
    """

    def __init__(self, images: ImageLoader | None) -> None:
        self._images = images
        self._shown: set[str] = set()
        self._taken: set[str] = set()
        self._refused: set[str] = set()

    async def get(self, name: str) -> bytes | None:
        """Return an image; None where it is not there, or was refused."""
        if self._images is None or name in self._refused:
            return None
        data = await self._images(name)
        if data is not None:
            self._shown.add(name)
        return data

    @property
    def shown_names(self) -> list[str] | None:
        """The images of the request that is made; None where there is nothing to take them from."""
        return None if self._images is None else sorted(self._shown)

    def begin_request(self) -> None:
        """Begin a request."""
        self._shown.clear()

    def mark_accepted(self) -> None:
        """Note that the model took the request."""
        self._taken |= self._shown

    def mark_rejected(self) -> bool:
        """Note that it refused the request; False where no image can be why.

        What it has taken before is not suspected.
        """
        suspects = self._shown - self._taken
        self._refused |= suspects
        return bool(suspects)
