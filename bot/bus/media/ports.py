"""What a channel hands over of the files that people send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from bot.bus.messages import Attachment


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on a platform's server, not fetched yet.

    Attributes:
        kind: As in ``Attachment``.
        name: Its name, or a word for it.
        mime: Its media type by the platform, ``application/octet-stream`` where it says none.
        size: Bytes by the platform; None where it does not say.
        fetch: Returns its bytes, given the most that may be read. Raises ``FileUnavailable``.
    """

    kind: Literal["image", "voice", "audio", "video", "document"]
    name: str
    mime: str
    size: int | None
    fetch: Callable[[int], Awaitable[bytes]]


class AttachmentReceiver(Protocol):
    """Fetches, keeps and reads files. Only for those whom ``Access`` has let in."""

    async def receive(self, file: RemoteFile) -> Attachment:
        """Return what became of a file: kept, read as text, or why not. Bounded in time and size."""
        ...
