"""Messages on the bus: inbound messages, answers, partials, activity and delivery reports.

Rule 1: everything here is frozen; a channel and a worker may hold the same object.
Rule 2: text is text. Nothing is ever parsed out of an answer on its way to a channel.
Rule 3: a partial holds the whole text so far, so losing or repeating one does no harm.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from bot.core.errors import InvalidInbound
from bot.core.patterns import LazyPattern

Role = Literal["owner", "member"]
"""What a person may do: an owner everything, a member only what affects nobody else."""

CauseKind = Literal["person", "schedule", "trigger", "client"]

Right = Literal["chat", "read", "propose", "site"]
"""What a token may do for its person: ``chat`` through OpenAI's API; ``read`` memory; ``propose`` facts,
which wait for the person; call the ``site``'s own API, which only an owner's token may."""

_CHANNEL = LazyPattern(r"[a-z][a-z0-9_-]{0,31}")
_PART = LazyPattern(r"[^:\s]{1,256}")

OTHERS_NAME = LazyPattern(r"[@#:]\[[^\[\]\n]{0,200}(?:\]|\Z)")
"""A name that others chose, as it stands in ``Inbound.text``, perhaps cut: no word of the sender's."""
_LONGEST_NAME = 128
_IN_NAMES = LazyPattern(r"[^\W_]|[-'’]")
_ALSO_IN_NAMES = frozenset(("Mn", "Mc", "So"))
"""Categories of what is in names beside letters and digits: vowel signs, accents, emoji."""


def others_name(sign: str, name: str) -> str:
    """Return a name that others chose, as it stands in ``Inbound.text``; the sign is @, # or a colon.

    It keeps few signs, so that no reader of the text finds an address, a quotation or a label in it.
    """
    kept = "".join(
        one if _IN_NAMES.match(one) or unicodedata.category(one) in _ALSO_IN_NAMES else " "
        for one in name[:_LONGEST_NAME]
    )
    return f"{sign}[{'_'.join(kept.split()) or 'unknown'}]"


@dataclass(frozen=True, slots=True)
class Address:
    """A conversation's location.

    Attributes:
        channel: The channel's name, such as ``telegram``.
        chat_id: The platform's id of the chat; no colon, no white space.
        topic: The platform's id of the topic or thread, if the chat has them.
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
            InvalidInbound: It is no session key.
        """
        channel, _, rest = session.partition(":")
        chat_id, _, topic = rest.partition(":")
        return cls(channel, chat_id, topic or None)


@dataclass(frozen=True, slots=True)
class Sender:
    """A message's sender.

    Attributes:
        id: The platform's id, which cannot be forged.
        name: The display name.
        language: The language of the sender's client, a code of ``bot.core.i18n.LANGUAGES``; empty
            if it states none that the program speaks.
    """

    id: str
    name: str
    language: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message.

    Attributes:
        kind: The kind of file, as its sender sees it.
        name: The file's name, or a word for it if the platform gives none.
        mime: The file's media type.
        size: The size in bytes; 0 if unknown.
        blob: SHA-256 of the content in the blob store, hexadecimal; None if it was not stored.
        text: The text extracted from the file; not the person's own words.
        note: Why it was not stored or not read, for people; None if all went well.
        quoted: Whether it is a file of the message that this one replies to.
    """

    kind: Literal["image", "voice", "audio", "video", "document"]
    name: str
    mime: str
    size: int = 0
    blob: str | None = None
    text: str | None = None
    note: str | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """What made a message: a person, or something that acts without one.

    Only what a person said is evidence for memory; see ``bot.memory.records.evidence``.

    Attributes:
        kind: ``person``; ``schedule``, a due occurrence; ``trigger``, something that happened;
            ``client``, a program that uses tapebot as its model or memory.
        name: Which schedule, trigger or client; empty for a person, whom ``sender`` names.
        entry: Id of the entry on the session's tape that made it, such as the schedule's; 0 if none
            did.
    """

    kind: CauseKind = "person"
    name: str = ""
    entry: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the cause as a JSON object, for the tape and the journal."""
        return {"kind": self.kind, "name": self.name, "entry": self.entry}

    @classmethod
    def from_json(cls, record: object) -> Cause:
        """Return the cause in a JSON object; a missing one is a person, an unknown one a trigger."""
        if not isinstance(record, dict):
            return PERSON
        name, entry = record.get("name"), record.get("entry")
        kinds: tuple[CauseKind, ...] = get_args(CauseKind)
        return cls(
            next((kind for kind in kinds if kind == record.get("kind")), "trigger"),
            name if isinstance(name, str) else "",
            entry if type(entry) is int else 0,
        )


PERSON = Cause()
"""The cause of what a person sends."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the token by which a message came lets its program do in its person's name.

    Attributes:
        rights: Its rights; ``site`` includes the others.
        own_sessions: Whether it sees nothing of other sessions than its own.
    """

    rights: frozenset[Right]
    own_sessions: bool = False

    def allows(self, right: Right | None) -> bool:
        """Return whether it may do what needs a right; None is what only a person may do."""
        if right is None or (self.own_sessions and right in ("read", "site")):
            return False
        return right in self.rights or "site" in self.rights

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object, for the tape and the journal."""
        return {"rights": sorted(self.rights), "own_sessions": self.own_sessions}

    @classmethod
    def from_json(cls, record: object) -> Grant | None:
        """Return the grant in a JSON value, with no right where it cannot be read; None if there is none."""
        if record is None:
            return None
        told = record if isinstance(record, dict) else {}
        rights = frozenset(right for right in get_args(Right) if right in told.get("rights", ()))
        return cls(rights, told.get("own_sessions") is not False)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a program that uses tapebot as its model asks beside its user's words.

    Nothing of it is evidence for memory.

    Attributes:
        system: The program's instructions: advice.
        tools: The program's own tools, each ``{"name", "description", "parameters"}``. Calls of
            them go back to the program.
        tool_choice: As in ``ModelRequest``.
        parameters: Parameters of the model call, such as ``temperature`` and ``max_tokens``.
        results: Results of the program's tools: the call's id, and a text from outside.
        preset: Name of the model preset that it asks for; empty for the conversation's.
    """

    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str = "auto"
    parameters: dict[str, Any] = field(default_factory=dict)
    results: tuple[tuple[str, str], ...] = ()
    preset: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return what is set as a JSON object, for the journal and the tape."""
        record: dict[str, Any] = {
            "system": self.system,
            "tools": list(self.tools),
            "parameters": self.parameters,
            "results": [list(result) for result in self.results],
            "preset": self.preset,
        }
        if self.tool_choice != "auto":
            record["tool_choice"] = self.tool_choice
        return {name: value for name, value in record.items() if value}

    @classmethod
    def from_json(cls, record: object) -> ClientRequest | None:
        """Return the request in a JSON object; None if it is none."""
        if not isinstance(record, dict):
            return None
        tools, results = record.get("tools"), record.get("results")
        parameters = record.get("parameters")
        return cls(
            str(record.get("system") or ""),
            tuple(tool for tool in tools if isinstance(tool, dict))
            if isinstance(tools, list)
            else (),
            str(record.get("tool_choice") or "auto"),
            parameters if isinstance(parameters, dict) else {},
            tuple((str(call), str(text)) for call, text in results)
            if isinstance(results, list)
            else (),
            str(record.get("preset") or ""),
        )


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message to a session, from a person unless its cause is another.

    Attributes:
        address: The conversation.
        id: The platform's id of the message, unique within the conversation; duplicates are
            recognised by it.
        sender: The author.
        text: The person's own words; names in it that others chose are made by ``others_name``.
        sent_at: The time by the platform's clock, aware; ``InvalidInbound`` refuses a naive one.
        private: True if only this person and the bot are present.
        quote: Text of somebody else that the message quotes or forwards; never the person's own.
        role: The sender's role.
        expects_answer: False for overheard messages, which are kept as context and not answered.
        edited_message_id: The platform's id of the message that this one replaces.
        parts: The platform messages that make it, if there are several: of each the id, and where its
            text begins and ends in ``text``.
        attachments: The files that came with it.
        pressed_message_id: The platform's id of the bot's message whose button was pressed, if one
            was.
        answer_to: The surface that gets the answer to a command, if not the conversation: the
            command's author views the conversation from there, and takes no part in it.
        cause: What made it.
        client: What a client program asks of the model with it; None if there is no such program.
        grant: What the token by which it came allows; None if its person sent it themselves.
        moved_to: The id that the chat has by now, if it is not that of the address.
        trace: The ``traceparent`` of the message; see ``bot.core.telemetry.tracing``.
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
    edited_message_id: str | None = None
    parts: tuple[tuple[str, int, int], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    pressed_message_id: str | None = None
    answer_to: Address | None = None
    cause: Cause = PERSON
    client: ClientRequest | None = None
    grant: Grant | None = None
    moved_to: str | None = None
    trace: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse a time without a zone, which would be another one on another machine."""
        if self.sent_at.utcoffset() is None:
            raise InvalidInbound(
                f"sent_at {self.sent_at} has no time zone: give it one, such as datetime.now(UTC) has"
            )

    @property
    def session(self) -> str:
        """The session's key."""
        return self.address.session


_WHOLE_TEXT = 4_096
"""UTF-16 code units at which Telegram's clients cut a text; Discord's messages are shorter."""


def join_parts(
    parts: Iterable[tuple[str, str]],
) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """Join the texts of platform messages that are one, each with its id.

    Returns:
        The whole text, and ``Inbound.parts``.
    """
    text, before, places = "", "", list[tuple[str, int, int]]()
    for platform_id, part in parts:
        # A part that fills a message to the last unit was cut inside a word or line.
        whole = len(before.encode("utf-16-le", "surrogatepass")) < 2 * _WHOLE_TEXT
        text += "\n" if text and part and whole else ""
        places.append((platform_id, len(text), len(text) + len(part)))
        text, before = text + part, part
    return text, tuple(places)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Confirms that a message is durable, or was already known."""

    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """A button below an answer.

    Attributes:
        label: What it shows.
        command: The command that its press gives.
        id: What platforms get instead, if the command stands on a tape; see ``bot.bus.buttons``.
    """

    label: str
    command: str
    id: str = field(default="", compare=False)

    @property
    def data(self) -> str:
        """What a press of it sends."""
        return self.id or self.command


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file that is sent with an answer.

    Attributes:
        name: The file's name in the chat.
        path: The file's path on this machine, inside the home folder.
    """

    name: str
    path: Path

    @property
    def display_path(self) -> str:
        """The path for people: the name of its folder and its own, without the home folder."""
        return f"{self.path.parent.name}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Text that must be delivered to the chat, whole and once.

    Attributes:
        address: The conversation.
        id: Identifies this answer in delivery reports; the same after a restart.
        text: Markdown.
        reply_to: The platform's id of the message that it answers, if any; of several, the newest.
        stream: The stream of partials that this text completes, if it was streamed.
        buttons: Shown below it if the platform has buttons; the text makes sense without them.
        sent_message_ids: Ids of platform messages that already carry parts of it, in order, as
            reported.
        replaced_message_id: The platform's id of the message that it replaces: that of the pressed
            button.
        files: Sent below it, in order; a file that is gone or too large is mentioned in the text.
        report_to: Key of the session that it belongs to, if it is shown in another conversation.
        alone: Whether it is for who pressed a button, which changed nothing: platforms that can show
            it to them alone.
        trace: As in ``Inbound``.
    """

    address: Address
    id: str
    text: str
    reply_to: str | None = None
    stream: str | None = None
    buttons: tuple[Button, ...] = ()
    sent_message_ids: tuple[str, ...] = ()
    replaced_message_id: str | None = None
    files: tuple[OutgoingFile, ...] = ()
    report_to: str | None = None
    alone: bool = False
    trace: str | None = field(default=None, compare=False)

    @property
    def session(self) -> str:
        """Key of the session that gets the delivery reports."""
        return self.report_to or self.address.session


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """The text of an answer so far; only the newest of a stream counts.

    Attributes:
        address: The conversation.
        stream: The stream's name; the id of the answer that completes it.
        text: The whole text so far.
        reply_to: As in ``Answer``.
        sent_message_ids: As in ``Answer``.
    """

    address: Address
    stream: str
    text: str
    reply_to: str | None = None
    sent_message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """What the bot is doing for a chat, for typing indicators; may be dropped.

    Attributes:
        address: The conversation.
        state: ``thinking`` while a turn runs, ``waiting`` while it waits because too many chats
            ask the model at once, ``tool`` while a tool runs, ``idle`` afterwards.
        detail: The tool's name.
    """

    address: Address
    state: Literal["thinking", "waiting", "tool", "idle"]
    detail: str = ""


Outbound = Answer | PartialAnswer | Activity


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A channel's report on the delivery of an answer.

    Attributes:
        session: The session's key.
        answer: The answer's id.
        delivered: False if the platform refused it for good.
        platform_ids: Ids of the platform messages that carry it, in order.
        error: Why it was not delivered, perhaps as a ``Reason``; None if it was.
        final: False for a report on parts of an answer, which is followed by others.
    """

    session: str
    answer: str
    delivered: bool = True
    platform_ids: tuple[str, ...] = field(default_factory=tuple)
    error: str | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """Asks a session's holder to release it if idle: another process or session needs it."""
