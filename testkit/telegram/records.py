"""Records of the Telegram test server; times are of the machine's monotonic clock, for all processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageVersion:
    """The content of a message from a point in time on."""

    at: float
    text: str
    entities: tuple[Json, ...] = ()
    buttons: tuple[tuple[Json, ...], ...] = ()


@dataclass(slots=True)
class BotMessage:
    """A message that a bot sent, as people in the chat see it."""

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
        return self.versions[-1].text

    @property
    def entities(self) -> tuple[Json, ...]:
        return self.versions[-1].entities

    @property
    def buttons(self) -> tuple[tuple[Json, ...], ...]:
        return self.versions[-1].buttons


@dataclass(frozen=True, slots=True)
class BotApiCall:
    """A call of the Bot API."""

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
    """A state of a message draft that streams into a private chat."""

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
    """An update for a bot."""

    bot: int
    id: int
    update: Json
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
    """All records of the server."""

    changed: Callable[[], None] = lambda: None
    shown: list[BotMessage] = field(default_factory=list)
    calls: list[BotApiCall] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    drafts: list[MessageDraft] = field(default_factory=list)
    pressed: list[CallbackAnswer] = field(default_factory=list)
    updates: list[UpdateDelivery] = field(default_factory=list)
    downloads: list[Download] = field(default_factory=list)
    polling: list[int] = field(default_factory=list)

    def messages(self, chat: int, *, topic: int | None = None) -> list[BotMessage]:
        """Return the bots' messages in a chat, oldest first."""
        there = [one for one in self.shown if one.chat == chat and one.deleted_at is None]
        return [one for one in there if topic in (None, one.topic)]

    def texts(self, chat: int) -> list[str]:
        return [one.text for one in self.messages(chat)]

    def called(self, method: str, *, chat: int | None = None) -> list[BotApiCall]:
        return [one for one in self.calls if one.method == method and chat in (None, one.chat)]

    @property
    def rejected(self) -> list[BotApiCall]:
        """Calls that were answered with an error or not answered."""
        return [one for one in self.calls if one.status != 200]

    @property
    def unconfirmed(self) -> list[UpdateDelivery]:
        """Updates that a bot has not confirmed."""
        return [one for one in self.updates if one.confirmed_at is None and not one.dropped]

    def statistics(self) -> Json:
        return {
            "shown, calls, updates": (len(self.shown), len(self.calls), len(self.updates)),
            "rejected": [(one.method, one.status, one.description) for one in self.rejected[-10:]],
            "unconfirmed": len(self.unconfirmed),
            "last texts": [one.text[:80] for one in self.shown[-5:]],
        }
