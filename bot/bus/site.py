"""What the web channel and the program's site are to each other.

The channel carries conversations; the site serves pages, and knows who is logged in and what tapes hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from bot.bus.messages import Address, Answer, Attachment, Button, OutgoingFile, Role

if TYPE_CHECKING:
    # Loaded only where a site is served.
    from fastapi import APIRouter
    from starlette.requests import HTTPConnection

WEB_CHANNEL = "web"
"""The channel's name."""


@dataclass(frozen=True, slots=True)
class WebUser:
    """Somebody who is logged in.

    Attributes:
        id: The channel's id of them, and of their chat: ``local`` for whoever runs the program on this
            machine, ``telegram.42`` for who logged in by a code sent to ``telegram:42``.
        name: As shown.
        role: What they may do, as the door says now.
    """

    id: str
    name: str
    role: Role

    @property
    def address(self) -> Address:
        """Their conversation."""
        return Address(WEB_CHANNEL, self.id)


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of a conversation, as a chat shows it.

    Attributes:
        position: Id of the entry on the tape that settled it: lines are in the order of these.
        id: Of a person's message the platform's id (``Inbound.id``); of an answer its id.
        author: Who said it.
        name: As shown; empty for the bot.
        text: A person's words as they are; Markdown of the bot's.
        at: When, ISO 8601.
        buttons: Below it.
        replaces: Id of the line whose place it takes.
        attachments: What came with a person's message.
        files: What goes out with an answer.
    """

    position: int
    id: str
    author: Literal["person", "bot"]
    name: str
    text: str
    at: str
    buttons: tuple[Button, ...] = ()
    replaces: str | None = None
    attachments: tuple[Attachment, ...] = ()
    files: tuple[OutgoingFile, ...] = ()


class Transcript(Protocol):
    """What was said in conversations, read from their tapes: nothing is kept a second time."""

    async def newest(
        self, session: str, limit: int, before: int | None = None
    ) -> list[TranscriptMessage]:
        """Return the newest lines, oldest first; of those before a position where one is given.

        A conversation that has no tape yet has none.
        """
        ...

    async def since(self, session: str, position: int) -> list[TranscriptMessage]:
        """Return the lines behind a position, oldest first."""
        ...

    async def erasure_version(self, session: str) -> str:
        """Return a mark that is another one once something was erased: what was read before may show it."""
        ...

    async def message(self, session: str, position: int) -> TranscriptMessage | None:
        """Return the line of a position; None where there is none."""
        ...


class RemoteCommands(Protocol):
    """Gives commands in a conversation for somebody who looks at it from elsewhere."""

    async def run(
        self,
        session: Address,
        visitor: WebUser,
        text: str,
        *,
        private: bool,
        pressed: str | None = None,
        within: float = 30.0,
    ) -> Answer:
        """Give a command with the same checks as in the chat, and return its answer.

        The command is on the conversation's tape, with who gave it; the answer is on the tape, and
        is shown nowhere else than here.

        Args:
            session: The conversation.
            visitor: Who gives the command.
            text: The command, such as ``/memory undo``.
            private: Whether the conversation is one person's with the bot.
            pressed: Id of the answer whose button it is, where it is one.
            within: Seconds that it may take.

        Raises:
            InvalidInbound: It is no command.
            TimeoutError: There was no answer in time; it is under way, and will be on the tape.
            SessionFull: Too much waits there.
            BusError: It could not be recorded.
        """
        ...


class WebBackend(Protocol):
    """What the program gives the web channel."""

    @property
    def transcript(self) -> Transcript:
        """What was said."""
        ...

    def render(self, markdown: str) -> str:
        """Return an answer as HTML that holds nothing but formatted text, whatever is in it."""
        ...

    async def user(self, connection: HTTPConnection) -> WebUser | None:
        """Return who is logged in on a connection, and may use the bot; None for nobody."""
        ...

    async def blob(self, digest: str) -> bytes | None:
        """Return a kept file's content; None where it is not there."""
        ...

    async def serve(self, chat: APIRouter, desk: RemoteCommands) -> None:
        """Serve the site with the chat's routes until cancelled.

        Raises:
            ChannelRefused: It cannot listen where it should.
        """
        ...
