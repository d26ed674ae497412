"""The books of the Discord server for tests: what bots did, when, and how it ended.

Times are seconds of the monotonic clock. Ids are Discord's snowflakes as integers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import anyio

EPHEMERAL = 1 << 6
"""The flag of a message that one user sees."""
LOADING = 1 << 7
"""The flag of a deferred answer that shows "thinking"."""


@dataclass(frozen=True, slots=True)
class DiscordUpload:
    """A file.

    Attributes:
        name: Its name.
        data: Its bytes.
        mime: Its media type.
        seconds: The length of a voice message, else None.
        id: Given by the server.
    """

    name: str
    data: bytes
    mime: str = "application/octet-stream"
    seconds: float | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class MessageRevision:
    """What a message showed from a moment on."""

    content: str
    components: tuple[Any, ...]
    at: float


@dataclass(slots=True)
class DiscordMessage:
    """A message and all that ever happened to it.

    Attributes:
        id: Its id.
        channel_id: Where it stands.
        author_id: Who wrote it.
        content: Its text now.
        kind: Discord's message type: 0 said, 19 a reply, 20 a command's answer, 18 and 21 systems'.
        reference: The id of the message that it replies to.
        uploads: Its files.
        embeds: Its embeds.
        components: Its components now.
        allowed_mentions: As the bot sent it; None where the bot left it to the default.
        mentions: The users whom the text mentions and who were pinged.
        mention_roles: The roles that were pinged.
        mention_everyone: Whether everybody was pinged.
        nonce: As sent.
        flags: Discord's flags.
        interaction_id: The interaction that it answers.
        created: When it was shown.
        edited: When it was last edited; None for never.
        deleted: When it was deleted; None while it stands.
        shown: Everything it ever showed, the first text first.
        reactions: Emoji and who reacted with it.
        extra: Fields put over its JSON.
    """

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
    reactions: dict[str, list[int]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ephemeral(self) -> bool:
        """Whether one user alone sees it."""
        return bool(self.flags & EPHEMERAL)

    @property
    def loading(self) -> bool:
        """Whether it is a deferred answer without content yet."""
        return bool(self.flags & LOADING)

    @property
    def edits(self) -> list[MessageRevision]:
        """What it showed after each edit."""
        return self.shown[1:]


@dataclass(frozen=True, slots=True)
class RestCall:
    """A REST call.

    Attributes:
        method: Its method.
        path: Its path below ``/api/v10``.
        status: The answer's status; 0 where the connection was broken instead.
        at: When it arrived.
        took: Seconds until it was answered.
        code: Discord's error code; 0 for none.
        body: The JSON that was sent, without files.
    """

    method: str
    path: str
    status: int
    at: float
    took: float
    code: int = 0
    body: Any = None


@dataclass(slots=True)
class InteractionRecord:
    """A command, a press of a button or an autocompletion, and what became of it.

    Attributes:
        id: Its id.
        token: Its token, valid for a while.
        kind: Discord's type: 2 a command, 3 a component, 4 an autocompletion.
        channel_id: Where.
        user_id: Whose.
        name: The command or the component's ``custom_id``.
        created: When it was sent.
        acknowledged: When the bot answered it first; None for never.
        answer: The type of that answer.
        message_id: The component's message.
        response_id: The message that answers it.
        followups: Further messages.
        choices: What an autocompletion offered.
        refused: Error codes given to answers that came too late or twice.
    """

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

    @property
    def time_to_ack(self) -> float | None:
        """Seconds until the first answer; None without one."""
        return None if self.acknowledged is None else self.acknowledged - self.created


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """Something that happened: on the gateway, typing, a download, a change to a thread."""

    what: str
    subject: str
    at: float


@dataclass(slots=True)
class DiscordRecords:
    """Everything, in order.

    Attributes:
        messages: All messages by id, deleted ones too.
        calls: Every REST call.
        interactions: All interactions by id.
        typing: Channels where a bot showed typing.
        gateway: Connects, identifies, resumes, closes.
        downloads: Files fetched.
        commands: Registered commands: by 0 for everywhere, or by guild.
    """

    messages: dict[int, DiscordMessage] = field(default_factory=dict)
    calls: list[RestCall] = field(default_factory=list)
    interactions: dict[int, InteractionRecord] = field(default_factory=dict)
    typing: list[RecordedEvent] = field(default_factory=list)
    gateway: list[RecordedEvent] = field(default_factory=list)
    downloads: list[RecordedEvent] = field(default_factory=list)
    commands: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def touch(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def note(self, where: list[RecordedEvent], what: str, subject: object = "") -> None:
        """Append a note to one of the lists."""
        where.append(RecordedEvent(what, str(subject), time.monotonic()))
        self.touch()

    def messages_in(self, channel: int, *, author: int | None = None) -> list[DiscordMessage]:
        """Return a channel's standing messages, oldest first; ephemeral ones too."""
        return [
            message
            for message in self.messages.values()
            if message.channel_id == channel
            and message.deleted is None
            and author in {None, message.author_id}
        ]

    def texts(self, channel: int, *, author: int | None = None) -> list[str]:
        """Return what a channel's standing messages say, oldest first."""
        return [message.content for message in self.messages_in(channel, author=author)]

    def requests(self, method: str, ending: str = "") -> list[RestCall]:
        """Return the calls with a method whose path ends in a text."""
        return [c for c in self.calls if c.method == method and c.path.endswith(ending)]

    def count_gateway_events(self, what: str) -> int:
        """Count the gateway's notes of one kind."""
        return sum(note.what == what for note in self.gateway)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values; files by their length."""
        public = (each.name for each in fields(self) if not each.name.startswith("_"))
        return {name: _plain(getattr(self, name)) for name in public}


def _plain(value: Any) -> Any:
    if isinstance(value, DiscordUpload):
        return {"id": value.id, "name": value.name, "mime": value.mime, "size": len(value.data)}
    if is_dataclass(value) and not isinstance(value, type):
        plain = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, InteractionRecord):
            plain["time_to_ack"] = value.time_to_ack
        return plain
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    return str(value)
