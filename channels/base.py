"""The channel contract: an adapter between one platform and the bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.bus import AttachmentReceiver, Authorizer, ChannelPort, SharedSpool


class Channel(Protocol):
    """Turns a platform's events into ``Inbound`` and ``Outbound`` into platform calls.

    A channel asks ``Access`` before it fetches, keeps or answers anything of anybody. It
    acknowledges the platform only after ``ChannelPort.publish`` has returned, and reports every
    ``Answer`` with a final report exactly once per time it receives it.
    """

    @property
    def name(self) -> str:
        """The first part of its sessions' keys."""
        ...

    async def run(self, port: ChannelPort) -> None:
        """Serve until the platform ends (the console's end of input) or it is cancelled.

        A lost network is waited out.

        Raises:
            ChannelRefused: The platform does not let the bot in; nothing but a person can mend it.
        """
        ...


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """A slash command as platforms list it.

    Attributes:
        name: Without the slash.
        summary: One line.
        forms: What may stand behind it, with a line on each, for completion.
    """

    name: str
    summary: str
    forms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """How the bot behaves where more than one person is present.

    Attributes:
        always_answer: Places (``telegram:-100``, ``discord:5``) where every message is answered;
            elsewhere only where the bot is mentioned, replied to, or given a command.
        keep_context: Publish what is not answered, too (``Inbound.asks`` False).
    """

    always_answer: frozenset[str] = frozenset()
    keep_context: bool = False


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """What the program gives a channel of a platform.

    Attributes:
        access: Says who may.
        media: Takes files in.
        commands: To be registered with the platform.
        group_policy: How to behave in groups.
        data_dir: The channel's own, for what it must not forget; made if it is not there.
        announce: Tells whoever runs the program, in one line: who the bot is, what keeps it.
        on_connected: To be called once the platform has taken the token.
        spool: Where updates wait that any process of several may receive, and the channel handles;
            None where there is one process, which keeps them in its folder.
    """

    access: Authorizer
    media: AttachmentReceiver
    commands: tuple[MenuCommand, ...]
    group_policy: GroupPolicy
    data_dir: Path
    announce: Callable[[str], None]
    on_connected: Callable[[], None] = lambda: None
    spool: SharedSpool | None = None
