"""What the channel contract needs to see of a platform: a person in front of a chat."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bot.bus import AccessDecision, AccessRequest, Attachment, RemoteFile
from channels.base import Channel, ChannelContext, GroupPolicy


class ChannelScene(Protocol):
    """One private chat of Ada's. Its methods never block: they run in the channel's event loop.

    Attributes:
        session: Its key.
        sender: Ada's id on the platform.
        strangers: Whether somebody else can write to the bot, too.
        sees_refusals: Whether the chat shows what the bus refuses.
    """

    session: str
    sender: str
    strangers: bool
    sees_refusals: bool

    def channel(self) -> Channel:
        """Return the channel, as it is at the start of a process."""
        ...

    async def ready(self) -> None:
        """Wait until the channel hears."""
        ...

    def say(self, text: str) -> None:
        """Let Ada write."""
        ...

    def intrude(self, text: str) -> None:
        """Let Eve, a stranger, write to the bot."""
        ...

    def seen(self) -> str:
        """Return the bot's messages in the chat, one below the other; no greetings or notices."""
        ...

    def files(self) -> dict[str, bytes]:
        """Return what the files hold that the bot shows in the chat, by their names."""
        ...


class OnlyOnePerson:
    """Access control that lets one person in, as an owner.

    Args:
        person: The person's id.
    """

    def __init__(self, person: str) -> None:
        self._person = person

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Allow the person; refuse everybody else without a word."""
        return AccessDecision("owner" if access_request.sender.id == self._person else None)


class NoFiles:
    """Takes in no attachment."""

    async def receive(self, file: RemoteFile) -> Attachment:
        """Return an attachment that says so."""
        return Attachment(file.kind, file.name, file.mime, note="not taken")


def channel_context(folder: Path, person: str) -> ChannelContext:
    """Return what a channel needs, for one person.

    Args:
        folder: Folder for the channel's state.
        person: Id of the person who is let in.
    """
    access = OnlyOnePerson(person)
    return ChannelContext(access, NoFiles(), (), GroupPolicy(), folder / "channel", lambda _: None)
