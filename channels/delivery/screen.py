"""What delivery asks of a platform: a few calls, and what may go wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bot.bus import Address, Button, OutFile

PieceT = TypeVar("PieceT")
"""What fits into one message of the platform; compared with ``==``."""


class ScreenError(Exception):
    """A call to the platform failed."""


class Flooded(ScreenError):
    """Too many calls.

    Attributes:
        seconds: How long the platform asks to wait.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds = seconds


class Unreachable(ScreenError):
    """No network, or the platform is out of order; another try may succeed."""


class FormatRefused(ScreenError):
    """The platform does not take this formatting; plain text it may."""


class MessageGone(ScreenError):
    """The message to be edited is not there any more, or cannot be edited."""


class Refused(ScreenError):
    """The platform will never take it: blocked, left, forbidden. The text says why."""


class FileRefused(ScreenError):
    """One of an answer's files will never be taken; its text may be. The words are for the chat.

    Attributes:
        file: The file.
    """

    def __init__(self, file: OutFile, told: str) -> None:
        super().__init__(told)
        self.file = file


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a platform may be called, in seconds.

    Attributes:
        edit: Between two edits of a streamed message.
        typing: Between two typing signs, less than the platform shows one.
        first: Before a streamed answer is shown for the first time: what is quick comes whole.
    """

    edit: float
    typing: float
    first: float = 0.4


@dataclass(frozen=True, slots=True)
class Outgoing(Generic[PieceT]):
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


class Screen(Protocol[PieceT]):
    """One platform's calls. Each may raise any ``ScreenError``; none waits or tries again itself."""

    def room(self, address: Address) -> str:
        """Return what the platform's limits count together, by any name."""
        ...

    def pace(self, address: Address) -> Pace:
        """Return how fast this chat may be written to."""
        ...

    def render(self, text: str) -> Sequence[PieceT]:
        """Return Markdown as messages within the platform's limit; none where nothing is visible."""
        ...

    def plain(self, text: str) -> Sequence[PieceT]:
        """Return the same without formatting."""
        ...

    async def send(self, message: Outgoing[PieceT]) -> str:
        """Show a message; return the platform's id of it."""
        ...

    async def send_file(self, message: Outgoing[OutFile]) -> str:
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
