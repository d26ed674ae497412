"""The world of the Telegram test server: people, bots, chats, messages, files and queued updates.

Everything here is synchronous and runs on one event loop.
"""

from __future__ import annotations

import copy
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import anyio

from testkit.telegram.records import Json, TelegramRecords, UpdateDelivery
from testkit.telegram.validation import BotApiError, bad

_ASKED_FOR = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds that a bot gets only by naming them: https://core.telegram.org/bots/api#getupdates."""


@dataclass(frozen=True, slots=True)
class TelegramUser:
    """A person, or a bot as others see it."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    language_code: str | None = None

    def as_json(self) -> Json:
        """The Bot API's ``User``."""
        known = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        optional = {"username": self.username, "language_code": self.language_code}
        return known | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True, slots=True)
class TelegramChat:
    """A chat; ``user`` is the person of a private one."""

    id: int
    type: str
    title: str | None = None
    user: TelegramUser | None = None
    forum: bool = False
    username: str | None = None

    def as_json(self) -> Json:
        """The Bot API's ``Chat``."""
        known: Json = {"id": self.id, "type": self.type}
        if self.user is not None:
            known |= {"first_name": self.user.first_name}
            known |= {"username": self.user.username} if self.user.username else {}
        elif self.title is not None:
            known |= {"title": self.title}
            known |= {"username": self.username} if self.username else {}
        return known | ({"is_forum": True} if self.forum else {})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that bots may fetch; ``size`` is what Telegram declares."""

    id: str
    unique: str
    path: str
    data: bytes
    size: int


@dataclass(slots=True)
class ChatState:
    """A chat and its state.

    Attributes:
        chat: The chat.
        away: The bots that are not in it, and why: ``left``, ``kicked`` or ``blocked``.
        topics: The messages that opened topics, by ``message_thread_id``.
        messages: Every message's JSON by id, as it is now.
        moved_to: The supergroup that it became.
        members: Who spoke here, the last one last.
        last_bot: The bot that spoke last.
    """

    chat: TelegramChat
    away: dict[int, str] = field(default_factory=dict)
    topics: dict[int, Json] = field(default_factory=dict)
    messages: dict[int, Json] = field(default_factory=dict)
    moved_to: int | None = None
    members: dict[int, TelegramUser] = field(default_factory=dict)
    last_bot: int | None = None


@dataclass(slots=True)
class BotAccount:
    """A bot's account.

    Attributes:
        token: Its secret.
        user: What ``getMe`` says.
        privacy: In groups it hears only commands, mentions and replies to itself.
        revoked: Its token answers 401.
        queue: Updates not yet confirmed, oldest first.
        allowed: The kinds it asked for; None for the default.
        webhook: What ``setWebhook`` was given; None without one.
        poll: Set when the waiting ``getUpdates`` has to end, with the reason.
        commands: Menus by scope and language.
        callbacks: Open callback queries.
    """

    token: str
    user: TelegramUser
    privacy: bool = False
    revoked: bool = False
    queue: list[UpdateDelivery] = field(default_factory=list)
    allowed: frozenset[str] | None = None
    webhook: Json | None = None
    webhook_error: tuple[int, str] | None = None
    poll: int = 0
    poll_ended: str = ""
    commands: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    callbacks: set[str] = field(default_factory=set)
    ids: Any = field(default_factory=lambda: itertools.count(700_000_001))
    changed: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        """Let whoever waits for this bot look again."""
        self.changed.set()
        self.changed = anyio.Event()

    def wants(self, kind: str) -> bool:
        """Whether an update of this kind is queued for it."""
        return kind not in _ASKED_FOR if not self.allowed else kind in self.allowed

    def confirm(self, below: int, books: TelegramRecords) -> None:
        """Forget the updates with a smaller id."""
        while self.queue and self.queue[0].id < below:
            done = self.queue.pop(0)
            done.confirmed_at = time.monotonic()
            books.note("confirmed", {"bot": self.user.id, "update_id": done.id})


class TelegramWorld:
    """Who and what there is.

    Args:
        books: Where facts are written.
        colliding_ids: Each chat counts its messages from 1, as real chats do; otherwise an id
            names one message of one chat.
    """

    def __init__(self, books: TelegramRecords, *, colliding_ids: bool = False) -> None:
        self.records = books
        self.bots: dict[str, BotAccount] = {}
        self.users: dict[int, TelegramUser] = {}
        self.rooms: dict[int, ChatState] = {}
        self.files: dict[str, StoredFile] = {}
        self._colliding = colliding_ids
        self._numbers = itertools.count(1)
        self.callback_ids = itertools.count(4_000_000_000_000_001)

    def bot_of(self, token: str) -> BotAccount:
        """The bot with this token.

        Raises:
            Refused: There is none, or the token was revoked.
        """
        bot = self.bots.get(token)
        if bot is None or bot.revoked:
            raise BotApiError(401, "Unauthorized")
        return bot

    def bot_by_id(self, bot: int) -> BotAccount:
        """The bot with this id; KeyError without one."""
        for one in self.bots.values():
            if one.user.id == bot:
                return one
        raise KeyError(f"no bot {bot} on this server")

    def room_for(self, bot: BotAccount, chat: str) -> ChatState:
        """The chat that a bot names, if it may speak there.

        Raises:
            Refused: There is no such chat, it moved, or the bot is not in it.
        """
        room = None
        for one in self.rooms.values():
            if chat in (str(one.chat.id), f"@{one.chat.username}"):
                room = one
        if room is None:
            raise bad("chat_id is empty" if not chat else "chat not found")
        if room.moved_to is not None:
            why = "Bad Request: group chat was upgraded to a supergroup chat"
            raise BotApiError(400, why, {"migrate_to_chat_id": room.moved_to})
        match room.away.get(bot.user.id):
            case "blocked":
                raise BotApiError(403, "Forbidden: bot was blocked by the user")
            case "kicked":
                raise BotApiError(403, f"Forbidden: bot was kicked from the {room.chat.type} chat")
            case "left":
                raise BotApiError(
                    403, f"Forbidden: bot is not a member of the {room.chat.type} chat"
                )
        return room

    def next_id(self, room: ChatState) -> int:
        """The id of a room's next message."""
        return max(room.messages, default=0) + 1 if self._colliding else next(self._numbers)

    def base(self, room: ChatState, sender: TelegramUser, topic: int | None) -> Json:
        """A message's head: id, sender, chat, date and topic."""
        head: Json = {
            "message_id": self.next_id(room),
            "from": sender.as_json(),
            "chat": room.chat.as_json(),
            "date": int(time.time()),
        }
        if topic is not None and topic in room.topics:
            head |= {"message_thread_id": topic, "is_topic_message": True}
            opened = room.topics[topic]
            if opened:
                # Telegram makes each message of a topic a reply to the message that opened it.
                head |= {"reply_to_message": opened}
        return head

    def replied(self, room: ChatState, head: Json, target: int) -> Json:
        """The fields of a reply, with the thread that a supergroup gives to replies."""
        original = room.messages[target]
        bare = {name: value for name, value in original.items() if name != "reply_to_message"}
        fields: Json = {"reply_to_message": bare}
        if room.chat.type == "supergroup" and "is_topic_message" not in head:
            # Also outside forums: only is_topic_message tells a topic from a thread of replies.
            fields |= {"message_thread_id": original.get("message_thread_id", target)}
        return fields

    def queue(self, bot: BotAccount, kind: str, content: Json) -> UpdateDelivery:
        """Queue an update for a bot, or drop it as Telegram does with kinds not asked for."""
        delivery = self._delivery(bot, {kind: copy.deepcopy(content)})
        delivery.dropped = not bot.wants(kind)
        self._enqueue(bot, delivery)
        return delivery

    def raw(self, bot: BotAccount, content: Json) -> UpdateDelivery:
        """Queue an update as it is, whatever it is."""
        delivery = self._delivery(bot, content)
        self._enqueue(bot, delivery)
        return delivery

    def _enqueue(self, bot: BotAccount, delivery: UpdateDelivery) -> None:
        """Write an update down, and queue it unless it was dropped."""
        self.records.updates.append(delivery)
        if not delivery.dropped:
            bot.queue.append(delivery)
            bot.wake()
        self.records.note("update", delivery)

    def _delivery(self, bot: BotAccount, content: Json) -> UpdateDelivery:
        number = next(bot.ids)
        return UpdateDelivery(
            bot.user.id, number, {"update_id": number, **content}, time.monotonic()
        )

    def present(self, room: ChatState) -> list[BotAccount]:
        """The bots in a room."""
        return [bot for bot in self.bots.values() if bot.user.id not in room.away]

    def hears(self, bot: BotAccount, room: ChatState, message: Json) -> bool:
        """Whether a bot is given a person's message, by its privacy mode."""
        if not bot.privacy or room.chat.type == "private":
            return True
        text = str(message.get("text") or message.get("caption") or "")
        name = (bot.user.username or "").lower()
        reply = message.get("reply_to_message", {}).get("from", {})
        if text.startswith("/"):
            target = text.split(maxsplit=1)[0].partition("@")[2].lower()
            return target == name or (not target and room.last_bot in (None, bot.user.id))
        return f"@{name}" in text.lower() or reply.get("id") == bot.user.id

    def add_file(self, folder: str, suffix: str, data: bytes, size: int | None) -> StoredFile:
        """Keep a file for bots to fetch."""
        number = len(self.files)
        unique = f"AgAD{number:08x}"
        name = f"{folder}/file_{number}{suffix}"
        stored = StoredFile(
            f"AgACAgIAAx{number:08x}", unique, name, data, len(data) if size is None else size
        )
        self.files[stored.id] = stored
        return stored
