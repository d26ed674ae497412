"""The API that a platform implements for outgoing messages, its errors and its rate limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio

from bot.bus import Address, Button, OutgoingFile
from channels.outgoing_files import file_size, missing_file_text, oversized_file_text

PieceT = TypeVar("PieceT")
"""The content of one message on the platform; compared with ``==``."""


class MessengerError(Exception):
    """A call to the platform failed."""


class RateLimited(MessengerError):
    """Too many calls.

    Attributes:
        seconds: How long the platform asks to wait.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")  # for the log
        self.seconds = seconds


class PlatformUnreachable(MessengerError):
    """There is no network, or the platform fails; a retry may succeed."""


class FormattingRejected(MessengerError):
    """The platform rejects this formatting but may accept plain text."""


class MessageGone(MessengerError):
    """The message to edit, or to reply to, no longer exists or cannot be edited."""


class MessageRejected(MessengerError):
    """The platform rejects the message permanently: blocked, left, forbidden. The text says why."""


class FileRejected(MessengerError):
    """The platform rejects one of an answer's files permanently; the text may still be sent.

    The error's text is shown in the chat.

    Attributes:
        file: The file.
    """

    def __init__(self, file: OutgoingFile, text: str) -> None:
        super().__init__(text)
        self.file = file


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a platform may be called, in seconds.

    Attributes:
        edit: Least time between two edits of a streamed message.
        typing: Time between two typing indicators; less than the platform displays one.
        first_edit: Delay before a streamed answer is first displayed, so that quick answers arrive
            whole.
    """

    edit: float
    typing: float
    first_edit: float = 0.4


@dataclass(frozen=True, slots=True)
class OutgoingMessage(Generic[PieceT]):
    """One message to send.

    Attributes:
        address: The chat.
        piece: The content.
        key: The same for the same part of the same answer, even after a restart; platforms that can
            recognise repeated sends use it.
        reply_to: The platform's id of the message that this one answers.
        buttons: Shown below the message.
        is_new: Whether no earlier process can have sent it.
    """

    address: Address
    piece: PieceT
    key: str
    reply_to: str | None = None
    buttons: tuple[Button, ...] = ()
    is_new: bool = False


class MessengerApi(Protocol[PieceT]):
    """The outgoing calls of one platform.

    Each call may raise any ``MessengerError``. No call waits for a rate limit or retries.
    """

    def rate_limit_key(self, address: Address) -> str:
        """Return a key that is the same for all addresses that share the platform's rate limits."""
        ...

    def pace(self, address: Address) -> Pace:
        """Return how often this chat may be updated."""
        ...

    def render(self, text: str) -> Sequence[PieceT]:
        """Return Markdown as messages within the platform's limit; empty if nothing is visible."""
        ...

    def render_plain(self, text: str) -> Sequence[PieceT]:
        """Return the text as messages without formatting."""
        ...

    async def send(self, message: OutgoingMessage[PieceT]) -> str:
        """Send a message; return its id on the platform."""
        ...

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Send a file; return its message's id on the platform.

        Raises:
            FileRejected: The file is missing, too large, or not accepted.
        """
        ...

    async def edit(
        self, address: Address, message_id: str, piece: PieceT, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Edit a message of the bot; succeed if it already has this content."""
        ...

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message of the bot; succeed if it no longer exists."""
        ...

    async def tell_presser(
        self,
        address: Address,  # noqa: ARG002
        press: str,  # noqa: ARG002
        pieces: Sequence[PieceT],  # noqa: ARG002
    ) -> bool:
        """Tell the presser of a button alone what came of it; return False if that is impossible.

        Args:
            address: The chat.
            press: The inbound id of the press.
            pieces: The text.
        """
        return False

    async def typing(self, address: Address) -> None:
        """Display the typing indicator once."""
        ...

    async def draft(self, address: Address, stream: str, piece: PieceT) -> bool:
        """Display text as a draft; return False if the platform has none here, or refuses it."""
        ...


@dataclass(slots=True, weakref_slot=True)
class RateLimitState:
    """The rate-limit state that all topics of one chat share, by the event loop's clock.

    Attributes:
        next_edit_at: No streamed text is displayed before this time.
        retry_at: The platform asked for no calls before this time; calling earlier extends it.
    """

    next_edit_at: float = 0.0
    retry_at: float = 0.0

    def back_off(self, seconds: float) -> None:
        """Record that the platform asks to wait."""
        self.retry_at = max(self.retry_at, anyio.current_time() + seconds)

    async def wait(self) -> None:
        """Wait until the platform may be called again."""
        await anyio.sleep_until(self.retry_at)


async def check_file(file: OutgoingFile, max_bytes: int) -> None:
    """Check that a file exists and that the platform accepts its size.

    Args:
        file: The file.
        max_bytes: The most bytes that the platform accepts.

    Raises:
        FileRejected: It is missing or too large.
    """
    size = await file_size(file)
    if size is None:
        raise FileRejected(file, missing_file_text(file))
    if size > max_bytes:
        raise FileRejected(file, oversized_file_text(file, size, max_bytes))
