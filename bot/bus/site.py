"""Interfaces between the web channel and the web application.

The channel carries conversations; the site serves pages, manages logins and reads tapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from bot.bus.messages import Address, Answer, Attachment, Button, Grant, OutgoingFile, Role

if TYPE_CHECKING:
    # Loaded only if a site is served.
    from fastapi import APIRouter
    from starlette.requests import HTTPConnection

WEB_CHANNEL = "web"
"""The web channel's name."""


@dataclass(frozen=True, slots=True)
class WebUser:
    """A logged-in user.

    Attributes:
        id: The user's and the chat's id on the channel: ``local`` for the operator on this machine,
            ``telegram.42`` for a login by a code sent to ``telegram:42``.
        name: The display name.
        role: The current role by access control.
        language: The language of the browser; empty if it states none that the program speaks.
        client: Name of the program that acts for the user, if its conversations are sessions of its
            own; empty for people, and for programs that share the person's.
        grant: As in ``Inbound``.
    """

    id: str
    name: str
    role: Role
    language: str = ""
    client: str = ""
    grant: Grant | None = None

    @property
    def address(self) -> Address:
        """The user's conversation."""
        return Address(WEB_CHANNEL, self.id)


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of a conversation, as a chat shows it.

    Attributes:
        position: Id of the entry on the tape that determines the message's place in the order.
        id: The platform's id of a person's message (``Inbound.id``), or an answer's id.
        author: The kind of author.
        name: The author's display name; empty for the bot.
        text: A person's words as they are, or the bot's Markdown.
        at: The time, ISO 8601.
        buttons: Buttons below it.
        replaces: Id of the message that it replaces.
        attachments: Files that came with a person's message.
        files: Files that are sent with an answer.
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
    """Reads conversations from their tapes; nothing is stored a second time."""

    async def newest(
        self, session: str, limit: int, before: int | None = None
    ) -> list[TranscriptMessage]:
        """Return the newest messages, or the newest before a position, oldest first.

        A conversation without a tape has none.
        """
        ...

    async def since(self, session: str, position: int) -> list[TranscriptMessage]:
        """Return the messages after a position, oldest first."""
        ...

    async def erasure_version(self, session: str) -> str:
        """Return a value that changes with every erasure, after which to read everything anew."""
        ...

    async def message(self, session: str, position: int) -> TranscriptMessage | None:
        """Return the message at a position; None without one."""
        ...


class RemoteCommands(Protocol):
    """Runs commands in a conversation for a user who views it from another surface."""

    async def run(
        self,
        session: Address,
        user: WebUser,
        text: str,
        *,
        private: bool,
        pressed: str | None = None,
        within: float = 30.0,
    ) -> Answer:
        """Run a command with the same checks as in the chat, and return its answer.

        Command, author and answer are recorded on the conversation's tape; the answer is shown only
        here.

        Args:
            session: The conversation.
            user: The user who gives the command.
            text: The command, such as ``/memory undo``.
            private: Whether the conversation is one person's with the bot.
            pressed: Id of the answer whose button was pressed, if one was.
            within: Seconds to wait for the answer.

        Raises:
            InvalidInbound: It is no command.
            TimeoutError: No answer came in time; the command still runs, and its answer will be on
                the tape.
            SessionFull: Too many messages wait in the session.
            BusError: It could not be recorded.
        """
        ...


class WebBackend(Protocol):
    """The web application, as the web channel sees it."""

    @property
    def transcript(self) -> Transcript:
        """The transcript of conversations."""
        ...

    def render(self, markdown: str) -> str:
        """Return an answer as HTML that is safe whatever the Markdown contains."""
        ...

    async def user(self, connection: HTTPConnection) -> WebUser | None:
        """Return the logged-in user of a connection if they have access; else None."""
        ...

    async def blob(self, digest: str) -> bytes | None:
        """Return a stored file's content; None if it is missing."""
        ...

    async def serve(self, chat: APIRouter, remote_commands: RemoteCommands) -> None:
        """Serve the site with the chat's routes until cancelled.

        Raises:
            ChannelRefused: It cannot listen on its address.
        """
        ...
