"""The contract of a channel, the adapter between a platform and the bus, and its context."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bot.bus import (
    AttachmentReceiver,
    Authorizer,
    ChannelPort,
    ReadPositionStore,
    Sender,
    SharedSpool,
)
from bot.core.i18n import N_, _, current_language

ReserveSlot = Callable[[str, float], Awaitable[float]]
"""Reserves a name's next slot, at least the given seconds after the previous one.

Returns the seconds until the slot. May raise ``BusError``; the caller retries later.
"""


logger = logging.getLogger(__name__)

_FIRST_LOGIN_SECONDS = 3.0
_LOGIN_SECONDS = 30.0

LanguageOf = Callable[[str, Sender], Awaitable[str]]
"""Returns the language of a channel's sender, for what the channel itself tells them."""


async def client_language(_: str, sender: Sender) -> str:
    """Return the language of the sender's client, or the current one."""
    return sender.language or current_language()


MoveChats = Callable[[dict[str, str]], Awaitable[dict[str, str]]]
"""Keeps present ids of chats by their first ones; returns all kept. May raise ``BusError``."""


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
            ChannelRefused: The platform rejects the bot, and only a person can fix that. It may be
                raised in any task of the channel, and so arrive in an exception group.
        """
        ...


NOT_TAKEN_TEXT = N_(
    "Something went wrong, and I could not accept your message. Please send it again. The log has "
    "the reason."
)


class ConnectionStatus:
    """Tells the operator, once each, that a channel has no connection and that it has one again.

    Args:
        title: The channel, for people.
        where: The server that it connects to.
        context: What the application gave the channel.
    """

    def __init__(self, title: str, where: str, context: ChannelContext) -> None:
        self._title = title
        self._where = where
        self._context = context
        self.is_lost = False

    @property
    def login_seconds(self) -> float:
        """The longest time of a login: short for the first, so that people soon hear of an outage."""
        return _LOGIN_SECONDS if self.is_lost else _FIRST_LOGIN_SECONDS

    def lost(self, error: object) -> None:
        """Record that there is no connection, and that the channel tries again."""
        what = _(
            "{channel}: no connection to {where}; retrying ({error})",
            channel=self._title,
            where=self._where,
            error=error,
        )
        self._context.problems[self._title] = what
        if not self.is_lost:
            self.is_lost = True
            logger.warning("%s", what)
            self._context.announce(what)

    def restored(self) -> None:
        """Record that there is a connection."""
        self._context.problems.pop(self._title, None)
        if self.is_lost:
            self.is_lost = False
            self._context.announce(_("{channel}: connected again", channel=self._title))


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """A slash command as platforms list it.

    Descriptions are messages for translation: ``_(command.summary)``.

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
        default_language: The installation's language.
        language: Tells the language of a sender.
        on_connected: Called once the platform has accepted the token.
        problems: Why channels have no connection, by their titles; for ``/status`` and ``doctor``.
        move_chats: Keeps which chats have another id; None to keep that for this run only.
        spool: Stores updates that any of several processes receives until the channel handles them.
        read_positions: Stores how far the channel has read.
        reserve_login: Spaces out what all processes do at the platform.

    The last three are shared by all processes, and None if there is only one.
    """

    access: Authorizer
    media: AttachmentReceiver
    commands: tuple[MenuCommand, ...]
    group_policy: GroupPolicy
    data_dir: Path
    announce: Callable[[str], None]
    default_language: str = "en"
    language: LanguageOf = client_language
    on_connected: Callable[[], None] = lambda: None
    problems: dict[str, str] = field(default_factory=dict)
    move_chats: MoveChats | None = None
    spool: SharedSpool | None = None
    read_positions: ReadPositionStore | None = None
    reserve_login: ReserveSlot | None = None


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """A request that shows whether a bot's token is valid, for ``tapebot doctor --probe``.

    Attributes:
        url: The address; it may contain the token.
        headers: The request's headers.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """One configured channel, not yet created.

    Attributes:
        name: The channel's name: the platform's, or ``PLATFORM-NAME`` for one of several bots.
        create: Creates the channel; imports the platform's library only now, in a thread.
        shard: The shard's number, from 0.
        shards: How many shards the channel has.
        receive: With a shared spool, receives updates into it until cancelled, in every process,
            whichever runs the channel; None if only the channel itself receives.
        token_check: How to check its token; None if it has none.
    """

    name: str
    create: Callable[[ChannelContext], Channel]
    shard: int = 0
    shards: int = 1
    receive: Callable[[ChannelContext], Coroutine[Any, Any, None]] | None = None
    token_check: TokenCheck | None = None
