"""What the Telegram test server remembers: every message, call, update and download, with times.

Times are seconds of the machine's monotonic clock, so that processes of one machine can compare.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageVersion:
    """How a message looked from one moment on.

    Attributes:
        at: When it began to look so.
        text: The text or caption, without markup.
        entities: Its entities as the bot sent them, offsets in UTF-16 units.
        buttons: Rows of inline buttons.
    """

    at: float
    text: str
    entities: tuple[Json, ...] = ()
    buttons: tuple[tuple[Json, ...], ...] = ()


@dataclass(slots=True)
class BotMessage:
    """A message of a bot, as people in the chat saw it.

    Attributes:
        bot: The bot's id.
        chat: The chat's id.
        id: The message's id.
        topic: The ``message_thread_id`` that the bot gave.
        reply_to: The message that it answers.
        kind: ``text``, or the kind of media.
        silent: Sent without a notification.
        versions: The first text and each edit, in order; never empty.
        deleted_at: When it was removed.
    """

    bot: int
    chat: int
    id: int
    topic: int | None
    reply_to: int | None
    kind: str
    silent: bool
    versions: list[MessageVersion]
    deleted_at: float | None = None

    @property
    def text(self) -> str:
        """What it says now."""
        return self.versions[-1].text

    @property
    def entities(self) -> tuple[Json, ...]:
        """Its entities now."""
        return self.versions[-1].entities

    @property
    def buttons(self) -> tuple[tuple[Json, ...], ...]:
        """Its rows of buttons now."""
        return self.versions[-1].buttons

    @property
    def edits(self) -> list[MessageVersion]:
        """The versions after the first."""
        return self.versions[1:]


@dataclass(frozen=True, slots=True)
class BotApiCall:
    """A call of the Bot API.

    Attributes:
        bot: The caller's id; 0 for an unknown token.
        method: Its name as the documentation spells it, or as it was called where unknown.
        chat: The chat that it names.
        at: When it arrived.
        status: The HTTP status of the answer; 0 where the connection was broken instead.
        description: Why it was refused.
        params: The parameters, files left out.
        early: It came to a chat whose ``retry_after`` had not passed.
        performed: The method was carried out, whatever the caller was told.
    """

    bot: int
    method: str
    chat: int | None
    at: float
    status: int
    description: str
    params: Json
    early: bool = False
    performed: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """A chat action such as ``typing``."""

    bot: int
    chat: int
    topic: int | None
    action: str
    at: float


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A state of a message that streams into a private chat."""

    bot: int
    chat: int
    topic: int | None
    draft: int
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """A bot's answer to a callback query; ``text`` is the toast."""

    bot: int
    callback: str
    text: str
    alert: bool
    at: float


@dataclass(slots=True)
class UpdateDelivery:
    """An update on its way to a bot.

    Attributes:
        bot: The bot's id.
        id: The update's id.
        update: Its JSON.
        queued_at: When it came to be.
        handed_at: When it was given to the bot, each time.
        confirmed_at: When a higher offset or the webhook's 200 confirmed it.
        dropped: It was never queued, as the bot had not asked for its kind.
    """

    bot: int
    id: int
    update: Json
    queued_at: float
    handed_at: list[float] = field(default_factory=list)
    confirmed_at: float | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Download:
    """A request for a file's bytes; ``bot`` is 0 for an unknown token."""

    bot: int
    path: str
    at: float
    status: int


@dataclass(slots=True)
class TelegramRecords:
    """All that happened; read it freely, ``note`` is the server's.

    Attributes:
        file: Each fact is appended here as a line of JSON, if given.
        changed: Called after each fact.
        polling: The bots whose ``getUpdates`` is waiting now.
    """

    file: Path | None = None
    changed: Callable[[], None] = lambda: None
    shown: list[BotMessage] = field(default_factory=list)
    calls: list[BotApiCall] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    drafts: list[MessageDraft] = field(default_factory=list)
    pressed: list[CallbackAnswer] = field(default_factory=list)
    updates: list[UpdateDelivery] = field(default_factory=list)
    downloads: list[Download] = field(default_factory=list)
    reactions: list[Json] = field(default_factory=list)
    polling: list[int] = field(default_factory=list)

    def messages(
        self, chat: int, *, topic: int | None = None, deleted: bool = False
    ) -> list[BotMessage]:
        """The bots' messages of a chat, oldest first.

        Args:
            chat: The chat's id.
            topic: Only those of this topic.
            deleted: With those that were removed since.
        """
        return [
            one
            for one in self.shown
            if one.chat == chat
            and (topic is None or one.topic == topic)
            and (deleted or one.deleted_at is None)
        ]

    def texts(self, chat: int, *, topic: int | None = None) -> list[str]:
        """What the bots' messages of a chat say now."""
        return [one.text for one in self.messages(chat, topic=topic)]

    def called(self, method: str, *, chat: int | None = None) -> list[BotApiCall]:
        """The calls of a method."""
        return [
            one for one in self.calls if one.method == method and (chat is None or one.chat == chat)
        ]

    @property
    def rejected(self) -> list[BotApiCall]:
        """The calls that were answered with an error, or not at all."""
        return [one for one in self.calls if one.status != 200]

    @property
    def unconfirmed(self) -> list[UpdateDelivery]:
        """The updates that a bot was or will be given again."""
        return [one for one in self.updates if one.confirmed_at is None and not one.dropped]

    def statistics(self) -> Json:
        """Counts of everything, for a failing test's message."""
        return {
            "shown": len(self.shown),
            "edits": sum(len(one.edits) for one in self.shown),
            "calls": len(self.calls),
            "rejected": [(one.method, one.status, one.description) for one in self.rejected][-10:],
            "updates": len(self.updates),
            "unconfirmed": len(self.unconfirmed),
            "downloads": len(self.downloads),
            "last texts": [one.text[:80] for one in self.shown[-5:]],
        }

    def as_json(self) -> Json:
        """Everything, as ``/control/books`` gives it."""
        names = "shown calls actions drafts pressed updates downloads".split()
        facts = {name: [asdict(one) for one in getattr(self, name)] for name in names}
        return {**facts, "reactions": self.reactions, "polling": self.polling}

    def note(self, kind: str, fact: Any) -> None:
        """Write a fact to the file and wake whoever waits."""
        if self.file is not None:
            content = fact if isinstance(fact, dict) else asdict(fact)
            line = json.dumps({"at": time.monotonic(), "fact": kind, **content}, default=repr)
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
        self.changed()
