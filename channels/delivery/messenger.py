"""What delivery asks of a platform: a few calls, and what may go wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio

from bot.bus import Address, Button, OutgoingFile
from channels.outgoing_files import file_size, missing_file_text, oversized_file_text

PieceT = TypeVar("PieceT")
"""What fits into one message of the platform; compared with ``==``."""


class MessengerError(Exception):
    """A call to the platform failed."""


class RateLimited(MessengerError):
    """Too many calls.

    Attributes:
        seconds: How long the platform asks to wait.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds = seconds


class PlatformUnreachable(MessengerError):
    """No network, or the platform is out of order; another try may succeed."""


class FormattingRejected(MessengerError):
    """The platform does not take this formatting; plain text it may."""


class MessageGone(MessengerError):
    """The message to be edited is not there any more, or cannot be edited."""


class MessageRejected(MessengerError):
    """The platform will never take it: blocked, left, forbidden. The text says why."""


class FileRejected(MessengerError):
    """One of an answer's files will never be taken; its text may be. The words are for the chat.

    Attributes:
        file: The file.
    """

    def __init__(self, file: OutgoingFile, told: str) -> None:
        super().__init__(told)
        self.file = file


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a platform may be called, in seconds.

    Attributes:
        edit: Between two edits of a streamed message.
        typing: Between two typing signs, less than the platform shows one.
        first_edit: Before a streamed answer is shown for the first time: what is quick comes whole.
    """

    edit: float
    typing: float
    first_edit: float = 0.4


@dataclass(frozen=True, slots=True)
class OutgoingMessage(Generic[PieceT]):
    """One message to send.

    Attributes:
        address: Where.
        piece: Its content.
        key: The same for the same part of the same answer, also after a restart; a platform that
            can recognise a repeated send does so by it.
        reply_to: The platform's id of the message that it answers.
        buttons: Shown below it.
    """

    address: Address
    piece: PieceT
    key: str
    reply_to: str | None = None
    buttons: tuple[Button, ...] = ()


class MessengerApi(Protocol[PieceT]):
    """One platform's calls. Each may raise any ``ScreenError``; none waits or tries again itself."""

    def rate_limit_key(self, address: Address) -> str:
        """Return what the platform's limits count together, by any name."""
        ...

    def pace(self, address: Address) -> Pace:
        """Return how fast this chat may be written to."""
        ...

    def render(self, text: str) -> Sequence[PieceT]:
        """Return Markdown as messages within the platform's limit; none where nothing is visible."""
        ...

    def render_plain(self, text: str) -> Sequence[PieceT]:
        """Return the same without formatting."""
        ...

    async def send(self, message: OutgoingMessage[PieceT]) -> str:
        """Show a message; return the platform's id of it."""
        ...

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Show a file; return the platform's id of the message. ``FileRefused`` where it cannot be."""
        ...

    async def edit(
        self, address: Address, message_id: str, piece: PieceT, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Change a message of the bot's; one that is so already is fine."""
        ...

    async def delete(self, address: Address, message_id: str) -> None:
        """Take a message of the bot's away; one that is gone already is fine."""
        ...

    async def typing(self, address: Address) -> None:
        """Show that an answer is on its way."""
        ...

    async def draft(self, address: Address, stream: str, piece: PieceT) -> bool:
        """Show text that is no message yet; False where the platform has nothing of the kind."""
        ...


@dataclass(slots=True, weakref_slot=True)
class RateLimitState:
    """The limits of one chat, by the event loop's clock.

    Attributes:
        next_edit_at: No streamed text is shown before.
        retry_at: The platform asked to be left alone until then; asking again makes it longer.
    """

    next_edit_at: float = 0.0
    retry_at: float = 0.0

    def back_off(self, seconds: float) -> None:
        """Note that the platform asks to wait."""
        self.retry_at = max(self.retry_at, anyio.current_time() + seconds)

    async def wait(self) -> None:
        """Wait until the platform may be asked again."""
        await anyio.sleep_until(self.retry_at)


async def check_file(file: OutgoingFile, most: int) -> None:
    """Look whether a file is there, and of a size that can be sent.

    Args:
        file: The file.
        most: Bytes that the platform takes.

    Raises:
        FileRefused: It is not.
    """
    size = await file_size(file)
    if size is None:
        raise FileRejected(file, missing_file_text(file))
    if size > most:
        raise FileRejected(file, oversized_file_text(file, size, most))
