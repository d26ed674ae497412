"""Interfaces by which channels hand over the files that people send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from bot.bus.messages import Attachment


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on a platform's server that has not been fetched.

    Attributes:
        kind: As in ``Attachment``.
        name: The file's name, or a word for it.
        mime: The platform's media type; ``application/octet-stream`` if it gives none.
        size: The platform's size in bytes; None if it gives none.
        fetch: Returns the bytes, given the most to read. Raises ``FileUnavailable``.
        session: Key of the conversation that it was sent to; empty if the channel does not say.
        sender: The platform's id of who sent it, for whom its transcription is counted.
    """

    kind: Literal["image", "voice", "audio", "video", "document"]
    name: str
    mime: str
    size: int | None
    fetch: Callable[[int], Awaitable[bytes]]
    session: str = ""
    sender: str = ""


class AttachmentReceiver(Protocol):
    """Fetches, stores and reads files; call it only for authorized senders."""

    async def receive(self, file: RemoteFile) -> Attachment:
        """Fetch, store and read a file; return the attachment. Bounded in time and size."""
        ...
