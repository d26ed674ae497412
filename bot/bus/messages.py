"""What travels on the bus.

Rule 1: everything here is frozen; a channel and a worker may hold the same object.
Rule 2: text is text. Nothing is ever parsed out of an answer on its way to a channel.
Rule 3: a partial holds the whole text so far, so losing or repeating one does no harm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from bot.core.errors import InvalidInbound

Role = Literal["owner", "member"]
"""What a person may do here: the owner everything, a member what harms nobody else."""

_CHANNEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PART = re.compile(r"[^:\s]{1,256}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a conversation takes place.

    Attributes:
        channel: The channel's name, e.g. ``telegram``.
        chat_id: The platform's id of the chat; no colon, no white space.
        topic: The platform's id of the topic or thread, if the chat has such.
    """

    channel: str
    chat_id: str
    topic: str | None = None

    def __post_init__(self) -> None:
        """Refuse parts that would make two sessions share one key."""
        if not _CHANNEL.fullmatch(self.channel):
            raise InvalidInbound(f"channel name {self.channel!r} is not lower-case letters")
        for part in (self.chat_id, *([] if self.topic is None else [self.topic])):
            if not _PART.fullmatch(part):
                raise InvalidInbound(f"chat or topic id {part!r} is empty, long, or has a colon")

    @property
    def session(self) -> str:
        """The session's key, ``channel:chat_id`` or ``channel:chat_id:topic``."""
        parts = [self.channel, self.chat_id]
        if self.topic is not None:
            parts.append(self.topic)
        return ":".join(parts)

    @classmethod
    def parse(cls, session: str) -> Address:
        """Return the address of a session key.

        Raises:
            InvalidInbound: It is not one.
        """
        channel, _, rest = session.partition(":")
        chat_id, _, topic = rest.partition(":")
        return cls(channel, chat_id, topic or None)


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote a message: the platform's id, which cannot be forged, and the name shown."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """What came with a message beside its text.

    Attributes:
        kind: What it is to the person who sent it.
        name: Its file name, or a word for it where the platform gives none.
        mime: Its media type.
        size: Bytes; 0 where unknown.
        blob: SHA-256 of its content in the blob store, hexadecimal; None where it was not kept.
        text: What it says, as far as that could be read; not the person's own words.
        note: Why it was not kept or not read, in plain words; None where all went well.
    """

    kind: Literal["image", "voice", "audio", "video", "document"]
    name: str
    mime: str
    size: int = 0
    blob: str | None = None
    text: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message from a person.

    Attributes:
        address: The conversation.
        id: The platform's id of the message, unique within the conversation; duplicates are
            dropped by it.
        sender: Who wrote it.
        text: The person's own words.
        sent_at: When, by the platform's clock, aware.
        private: True where only this person and the bot are present.
        quote: Text of somebody else's that the message quotes or forwards; never the person's own.
        role: What the sender may do.
        expects_answer: False for what is only overheard: it is kept as context and not answered.
        edits: The platform's id of the message that this one takes the place of.
        attachments: What came with it.
        pressed_message_id: The platform's id of the bot's message whose button was pressed, where this is that.
        via: Where the answer to a command is shown, where that is not the conversation: whoever
            gave it looks at the conversation from elsewhere, and is no part of it.
        trace: Where it stands in a trace, for who works on it next; see ``bot.core.telemetry.tracing``.
    """

    address: Address
    id: str
    sender: Sender
    text: str
    sent_at: datetime
    private: bool = True
    quote: str | None = None
    role: Role = "member"
    expects_answer: bool = True
    edits: str | None = None
    attachments: tuple[Attachment, ...] = ()
    pressed_message_id: str | None = None
    via: Address | None = None
    trace: str | None = field(default=None, compare=False)

    @property
    def session(self) -> str:
        """The session's key."""
        return self.address.session


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The bus's word that a message is durable (or was already known)."""

    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """A button below an answer; pressing it is sending its command."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file that goes out with an answer.

    Attributes:
        name: What it is called in the chat.
        path: Where it lies on this machine, inside the home folder.
    """

    name: str
    path: Path

    @property
    def place(self) -> str:
        """Where it lies, for people who need not know the machine: its folder there and its name."""
        return f"{self.path.parent.name}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Text that must reach the chat, whole and once.

    Attributes:
        address: The conversation.
        id: Identifies this answer in delivery reports; the same after a restart.
        text: Markdown.
        reply_to: The platform's id of the message that is answered, if any; the newest of them
            where it answers several.
        stream: The stream of partials that this text completes, if it was streamed.
        buttons: Shown below it, where the platform has buttons; the text makes sense without them.
        shown: Platform messages that carry parts of it already, in order, as far as was reported.
        replaces: The platform message whose place it takes: that of the pressed button.
        files: Shown below it, in order. One that cannot be shown, since it is gone or too large, is
            told of in the text.
        of: Key of the session whose answer it is, where it is shown in another conversation.
        trace: As in ``Inbound``.
    """

    address: Address
    id: str
    text: str
    reply_to: str | None = None
    stream: str | None = None
    buttons: tuple[Button, ...] = ()
    shown: tuple[str, ...] = ()
    replaces: str | None = None
    files: tuple[OutgoingFile, ...] = ()
    of: str | None = None
    trace: str | None = field(default=None, compare=False)

    @property
    def session(self) -> str:
        """Key of the session that is told what became of it."""
        return self.of or self.address.session


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of an answer so far; only the newest of a stream counts.

    Attributes:
        address: The conversation.
        stream: Names the stream; the id of the answer that completes it.
        text: All of it so far.
        reply_to: As in ``Answer``.
        shown: As in ``Answer``.
    """

    address: Address
    stream: str
    text: str
    reply_to: str | None = None
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """What the bot is doing for a chat, for typing signs and spinners; may be dropped.

    Attributes:
        address: The conversation.
        state: ``thinking`` while a turn runs, ``tool`` while a tool does, ``idle`` after it.
        detail: The tool's name.
    """

    address: Address
    state: Literal["thinking", "tool", "idle"]
    detail: str = ""


Outbound = Answer | Partial | Activity


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A channel's word on an answer.

    Attributes:
        session: The session's key.
        answer: The answer's id.
        delivered: False where the platform refused it for good.
        platform_ids: Ids of the platform messages that carry it, in order.
        error: Why not, where it was not delivered.
        final: False for a word on the way: these messages carry a part of it, more will follow.
    """

    session: str
    answer: str
    delivered: bool = True
    platform_ids: tuple[str, ...] = field(default_factory=tuple)
    error: str | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """Another process wants the session: its holder leaves if it has nothing to do."""
