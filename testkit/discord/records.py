"""Records of the Discord test server; times are of the machine's monotonic clock, ids are integers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from testkit.loopback import Signal

EPHEMERAL = 1 << 6
"""Flag of a message that only one user sees."""
LOADING = 1 << 7
"""Flag of a deferred response that shows "thinking"."""


@dataclass(frozen=True, slots=True)
class DiscordUpload:
    """A file attached to a message."""

    name: str
    data: bytes
    mime: str = "application/octet-stream"
    seconds: float | None = None
    id: int = 0


@dataclass(slots=True)
class DiscordMessage:
    """A message and its history."""

    id: int
    channel_id: int
    author_id: int
    content: str
    kind: int = 0
    reference: int | None = None
    uploads: tuple[DiscordUpload, ...] = ()
    embeds: tuple[Any, ...] = ()
    components: tuple[Any, ...] = ()
    allowed_mentions: dict[str, Any] | None = None
    mentions: tuple[int, ...] = ()
    mention_roles: tuple[int, ...] = ()
    mention_everyone: bool = False
    nonce: str | None = None
    flags: int = 0
    interaction_id: int | None = None
    created: float = field(default_factory=time.monotonic)
    edited: float | None = None
    deleted: float | None = None
    edits: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ephemeral(self) -> bool:
        return bool(self.flags & EPHEMERAL)

    @property
    def loading(self) -> bool:
        """Whether it is a deferred response without content yet."""
        return bool(self.flags & LOADING)


@dataclass(frozen=True, slots=True)
class RestCall:
    """A REST call."""

    method: str
    path: str
    status: int
    at: float


@dataclass(slots=True)
class InteractionRecord:
    """A command, component press or autocomplete request, and the bot's response."""

    id: int
    token: str
    kind: int
    channel_id: int
    user_id: int
    name: str
    created: float = field(default_factory=time.monotonic)
    acknowledged: float | None = None
    answer: int | None = None
    message_id: int | None = None
    response_id: int | None = None
    followups: list[int] = field(default_factory=list)
    choices: list[Any] | None = None
    refused: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """A recorded event: of the gateway, typing, a download, a change to a thread."""

    what: str
    subject: str


@dataclass(slots=True)
class DiscordRecords:
    """All records, in order."""

    messages: dict[int, DiscordMessage] = field(default_factory=dict)
    calls: list[RestCall] = field(default_factory=list)
    interactions: dict[int, InteractionRecord] = field(default_factory=dict)
    typing: list[RecordedEvent] = field(default_factory=list)
    gateway: list[RecordedEvent] = field(default_factory=list)
    downloads: list[RecordedEvent] = field(default_factory=list)
    commands: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _changed: Signal = field(default_factory=Signal)

    def touch(self) -> None:
        self._changed.set()

    async def changed(self) -> None:
        await self._changed.wait()

    def note(self, where: list[RecordedEvent], what: str, subject: object = "") -> None:
        where.append(RecordedEvent(what, str(subject)))
        self.touch()

    def messages_in(self, channel: int, *, author: int | None = None) -> list[DiscordMessage]:
        there = [one for one in self.messages.values() if one.channel_id == channel]
        return [one for one in there if one.deleted is None and author in {None, one.author_id}]

    def texts(self, channel: int, *, author: int | None = None) -> list[str]:
        return [message.content for message in self.messages_in(channel, author=author)]

    def requests(self, method: str, ending: str = "") -> list[RestCall]:
        return [c for c in self.calls if c.method == method and c.path.endswith(ending)]

    def count_gateway_events(self, what: str) -> int:
        return sum(note.what == what for note in self.gateway)
