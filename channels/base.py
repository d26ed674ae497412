"""The contract of a channel, the adapter between one platform and the bus, and its context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.bus import AttachmentReceiver, Authorizer, ChannelPort, SharedSpool


class Channel(Protocol):
    """Convert a platform's events to ``Inbound`` and ``Outbound`` to platform calls.

    A channel asks its ``Authorizer`` before it fetches, stores or answers anything of anybody. It
    acknowledges an event to the platform only after ``ChannelPort.publish`` has returned, and sends
    one final report each time it receives an ``Answer``.
    """

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        ...

    async def run(self, port: ChannelPort) -> None:
        """Serve until the platform ends (such as the console's end of input) or until cancelled.

        While the network is lost, wait and reconnect.

        Raises:
            ChannelRefused: The platform rejects the bot, and only a person can fix that.
        """
        ...


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """A slash command as platforms list it.

    Attributes:
        name: The name, without the slash.
        summary: A description of one line.
        forms: The arguments that the command takes, each with a description, for completion.
    """

    name: str
    summary: str
    forms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """How the bot behaves where more than one person is present.

    Attributes:
        always_answer: Chats (``telegram:-100``, ``discord:5``) where every message is answered;
            elsewhere the bot answers only mentions, replies and commands.
        keep_context: Whether messages that need no answer are published too
            (``Inbound.expects_answer`` False).
    """

    always_answer: frozenset[str] = frozenset()
    keep_context: bool = False


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What the application gives a channel.

    Attributes:
        access: Decides who may use the bot.
        media: Stores attachments.
        commands: The commands to register with the platform.
        group_policy: How to behave in groups.
        data_dir: The channel's own directory for persistent state; created if missing.
        announce: Shows the operator one line, such as the bot's name or a connection problem.
        on_connected: Called once the platform has accepted the token.
        spool: Stores updates that any of several processes receives until the channel handles them;
            None in a single process, which stores them in ``data_dir``.
    """

    access: Authorizer
    media: AttachmentReceiver
    commands: tuple[MenuCommand, ...]
    group_policy: GroupPolicy
    data_dir: Path
    announce: Callable[[str], None]
    on_connected: Callable[[], None] = lambda: None
    spool: SharedSpool | None = None
