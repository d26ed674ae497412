"""Records of the Discord test server: messages, REST calls, interactions and gateway events.

Times are seconds of the monotonic clock. Ids are Discord's snowflakes as integers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import Any

import anyio

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


@dataclass(frozen=True, slots=True)
class MessageRevision:
    """The content of a message from a point in time on."""

    content: str
    components: tuple[Any, ...]
    at: float


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
    shown: list[MessageRevision] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ephemeral(self) -> bool:
        """Whether only one user sees it."""
        return bool(self.flags & EPHEMERAL)

    @property
    def loading(self) -> bool:
        """Whether it is a deferred response without content yet."""
        return bool(self.flags & LOADING)

    @property
    def edits(self) -> list[MessageRevision]:
        """The revisions after the first."""
        return self.shown[1:]


@dataclass(frozen=True, slots=True)
class RestCall:
    """A REST call."""

    method: str
    path: str
    status: int
    at: float
    took: float
    code: int = 0
    body: Any = None


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
    at: float


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
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def touch(self) -> None:
        """Wake the tasks that wait for a change."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def note(self, where: list[RecordedEvent], what: str, subject: object = "") -> None:
        """Append an event to one of the lists."""
        where.append(RecordedEvent(what, str(subject), time.monotonic()))
        self.touch()

    def messages_in(self, channel: int, *, author: int | None = None) -> list[DiscordMessage]:
        """Return a channel's existing messages, oldest first; ephemeral ones too."""
        return [
            message
            for message in self.messages.values()
            if message.channel_id == channel
            and message.deleted is None
            and author in {None, message.author_id}
        ]

    def texts(self, channel: int, *, author: int | None = None) -> list[str]:
        """Return the texts of a channel's existing messages, oldest first."""
        return [message.content for message in self.messages_in(channel, author=author)]

    def requests(self, method: str, ending: str = "") -> list[RestCall]:
        """Return the calls with a method whose path ends with ``ending``."""
        return [c for c in self.calls if c.method == method and c.path.endswith(ending)]

    def count_gateway_events(self, what: str) -> int:
        """Count the gateway events of one kind."""
        return sum(note.what == what for note in self.gateway)

    def as_json(self) -> dict[str, Any]:
        """Return all records by name."""
        public = (each.name for each in fields(self) if not each.name.startswith("_"))
        return {name: getattr(self, name) for name in public}
